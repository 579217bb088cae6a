-- aggregates without groups over joins of all rows
SELECT count(*) AS n, count(y.v) AS nv, sum(y.v) AS s, avg(y.w) AS a, max(y.kt) AS m FROM x LEFT JOIN y ON x.ks = y.ks
