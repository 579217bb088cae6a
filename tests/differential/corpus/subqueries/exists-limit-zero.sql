-- EXISTS with LIMIT 0 is never true: no rows
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k LIMIT 0)
