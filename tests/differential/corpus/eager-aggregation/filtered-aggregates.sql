-- aggregates with filters
SELECT y.ks, count(*) FILTER (WHERE x.v > 0) AS n, sum(x.w) FILTER (WHERE x.kb) AS s, max(x.v) FILTER (WHERE x.v < -100) AS m FROM x JOIN y ON x.k = y.k GROUP BY y.ks
