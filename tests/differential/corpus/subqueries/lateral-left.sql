-- LEFT JOIN LATERAL keeps rows of the left without a match
SELECT x.id, q.yid FROM x LEFT JOIN LATERAL (SELECT y.id AS yid FROM y WHERE y.k = x.k AND y.v > x.v) q ON true
