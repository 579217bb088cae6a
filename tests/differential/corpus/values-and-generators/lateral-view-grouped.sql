-- grouping by the exploded value
SELECT x, count(*) AS n, sum(id) AS s FROM tree LATERAL VIEW explode(xs) a AS x GROUP BY x
