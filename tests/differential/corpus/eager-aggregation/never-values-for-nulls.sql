-- an argument that has a value for a row of NULLs
SELECT x.ks, sum(coalesce(y.v, 100)) AS s, count(y.v IS NULL) AS n FROM x LEFT JOIN y ON x.k = y.k GROUP BY x.ks
