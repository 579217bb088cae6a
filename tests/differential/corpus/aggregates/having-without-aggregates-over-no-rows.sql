-- HAVING makes one row of no rows, which a subquery reads
SELECT id, (SELECT 5 FROM y WHERE y.id < 0 HAVING true) AS a FROM x
