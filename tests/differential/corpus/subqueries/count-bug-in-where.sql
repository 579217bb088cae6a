-- COUNT over no matching rows compared in WHERE
SELECT id FROM x WHERE (SELECT count(y.v) FROM y WHERE y.k = x.k) < 2
