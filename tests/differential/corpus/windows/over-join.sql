-- a window over a join on the partition key
SELECT x.id, y.id, row_number() OVER (PARTITION BY x.k ORDER BY x.id, y.id) AS r FROM x JOIN y ON x.k = y.k
