-- a correlated scalar subquery with ORDER BY and LIMIT 1
SELECT id, (SELECT y.s FROM y WHERE y.k = x.k ORDER BY y.w DESC NULLS LAST, y.id LIMIT 1) AS dearest FROM x
