-- a right join is a left join the other way round
SELECT y.kt, count(*) AS n, count(x.v) AS nv, sum(x.v) AS s, avg(x.v) AS a FROM x RIGHT JOIN y ON x.ks = y.ks AND x.v < 0 GROUP BY y.kt
