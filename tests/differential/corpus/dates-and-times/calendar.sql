-- a calendar made by explode of a sequence, with gaps filled
SELECT d, count(o.id) AS n
FROM (SELECT explode(sequence(DATE '2023-01-01', DATE '2023-03-31', INTERVAL 1 DAY)) AS d) AS c
LEFT JOIN orders AS o ON CAST(o.placed AS DATE) = c.d GROUP BY d
