-- customers who spent less than in the half year before
WITH halves AS (SELECT customer, CASE WHEN placed < TIMESTAMP'2023-07-01 00:00:00' THEN 1 WHEN placed < TIMESTAMP'2024-01-01 00:00:00' THEN 2 END AS half, sum(total) AS amount FROM orders GROUP BY 1, 2)
SELECT a.customer, a.amount AS before, coalesce(b.amount, 0) AS after FROM halves a LEFT JOIN halves b ON b.customer = a.customer AND b.half = 2
WHERE a.half = 1 AND coalesce(b.amount, 0) < a.amount
