-- a left join gives rows of NULLs, which only count(*) counts
SELECT x.ks, count(*) AS n, count(y.v) AS nv, count(y.id, y.w) AS nb, sum(y.w) AS s, avg(y.w) AS a, max(y.s) AS m FROM x LEFT JOIN y ON x.k = y.k AND y.v > 0 GROUP BY x.ks
