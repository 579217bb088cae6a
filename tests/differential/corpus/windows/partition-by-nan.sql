-- partitions by NaN, 0.0 and NULL
SELECT id, count(*) OVER (PARTITION BY kd) AS n FROM x
