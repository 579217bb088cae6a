-- LATERAL with ORDER BY and LIMIT: the first two of each
SELECT x.id, q.yid, q.v FROM x, LATERAL (SELECT y.id AS yid, y.v FROM y WHERE y.k = x.k ORDER BY y.v DESC NULLS LAST, y.id LIMIT 2) q
