-- DISTINCT aggregates see all rows
SELECT y.s, count(DISTINCT x.v) AS n, sum(x.w) AS s FROM x JOIN y ON x.k = y.k GROUP BY y.s
