-- aggregates over no rows: counts are 0, the rest is NULL
SELECT count(*) AS n, count(v) AS nv, sum(v) AS s, avg(w) AS a, max(s) AS m, collect_list(v) AS c FROM z
