-- HAVING, ORDER BY and LIMIT above merged groups
SELECT y.s, sum(x.v) AS total FROM x JOIN y ON x.k = y.k GROUP BY y.s HAVING count(*) > 2 ORDER BY total DESC, y.s LIMIT 3
