-- aggregates of both sides see the joined rows
SELECT x.ks, sum(x.v) AS a, sum(y.v) AS b, sum(x.w * y.v) AS c FROM x JOIN y ON x.k = y.k GROUP BY x.ks
