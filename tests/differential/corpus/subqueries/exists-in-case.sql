-- EXISTS and a scalar subquery in branches of CASE
SELECT id,
  CASE WHEN EXISTS (SELECT 1 FROM y WHERE y.k = x.k) THEN (SELECT max(y.v) FROM y WHERE y.k = x.k)
       WHEN v > 0 THEN (SELECT min(v) FROM y) ELSE -99 END AS c
FROM x
