-- a full join is aggregated as it is
SELECT x.ks, sum(y.w) AS s, count(*) AS n FROM x FULL JOIN y ON x.k = y.k GROUP BY x.ks
