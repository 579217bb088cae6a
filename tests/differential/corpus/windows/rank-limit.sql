-- rank at most k becomes a limit of each task
SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY v) AS r FROM x) WHERE r <= 2
