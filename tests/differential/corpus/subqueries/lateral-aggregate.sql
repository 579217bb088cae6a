-- LATERAL with an aggregate keeps rows without a match
SELECT x.id, q.n, q.m FROM x, LATERAL (SELECT count(*) AS n, max(y.v) AS m FROM y WHERE y.k = x.k) q
