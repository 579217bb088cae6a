-- a condition beside the key is a key of the partial groups
SELECT y.s, sum(x.w) AS s, count(*) AS n FROM x JOIN y ON x.k = y.k AND x.v < y.v GROUP BY y.s
