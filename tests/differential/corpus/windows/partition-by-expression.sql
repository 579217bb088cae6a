-- partitions by an expression
SELECT id, sum(v) OVER (PARTITION BY k % 3, kb IS NULL) AS s FROM x
