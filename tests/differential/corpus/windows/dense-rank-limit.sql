-- dense_rank below k with another filter
SELECT * FROM (SELECT id, v, dense_rank() OVER (PARTITION BY kb ORDER BY v DESC) AS r FROM x) WHERE r < 3 AND id % 2 = 0
