-- HAVING in a correlated COUNT makes the value NULL again
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k HAVING count(*) > 3) AS many FROM x
