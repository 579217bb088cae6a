-- JOIN LATERAL with a condition
SELECT x.id, q.m FROM x JOIN LATERAL (SELECT max(y.v) AS m FROM y WHERE y.k < x.k) q ON q.m > x.v
