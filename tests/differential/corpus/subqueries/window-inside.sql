-- a window function inside a correlated subquery
SELECT id, (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY y.v) AS r FROM y WHERE y.kb = x.kb) q) AS ranks FROM x
