-- LATERAL of expressions only
SELECT x.id, q.a, q.b FROM x, LATERAL (SELECT x.v + 1 AS a, x.w * 2 AS b WHERE x.v > 0) q
