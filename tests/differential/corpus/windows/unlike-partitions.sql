-- windows of unlike partitionings
SELECT id, sum(v) OVER (PARTITION BY k) AS a, sum(v) OVER (PARTITION BY ks) AS b, sum(v) OVER (PARTITION BY k, ks) AS c FROM x
