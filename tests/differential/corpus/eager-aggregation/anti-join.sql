-- groups of an anti join by other columns
SELECT x.ks, count(*) AS n, avg(x.w) AS a FROM x LEFT ANTI JOIN y ON x.k = y.k GROUP BY x.ks
