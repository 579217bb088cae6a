-- a LATERAL that reads another LATERAL
SELECT x.id, a.n, b.m FROM x, LATERAL (SELECT count(*) AS n FROM y WHERE y.k = x.k) a, LATERAL (SELECT a.n * 10 + coalesce(x.v, 0) AS m) b
