-- an aggregate above a join whose key it groups by
SELECT x.k, sum(y.w) AS s, count(DISTINCT y.ks) AS n FROM x JOIN y ON x.k = y.k GROUP BY x.k
