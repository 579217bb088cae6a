-- a correlated scalar subquery with LIMIT and OFFSET
SELECT id, (SELECT y.id FROM y WHERE y.kb = x.kb ORDER BY y.id LIMIT 1 OFFSET 2) AS third FROM x
