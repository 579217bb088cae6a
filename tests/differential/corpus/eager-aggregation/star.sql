-- facts with several dimensions
SELECT y.s, g.b, sum(x.w) AS total, count(*) AS n, avg(x.v) AS a FROM x JOIN y ON x.k = y.k JOIN g ON x.ks = g.g GROUP BY y.s, g.b
