-- the mean days between orders of a customer
SELECT customer, count(*) AS gaps, min(days) AS shortest, max(days) AS longest
FROM (SELECT customer, datediff(placed, lag(placed) OVER (PARTITION BY customer ORDER BY placed, id)) AS days FROM orders WHERE placed IS NOT NULL)
WHERE days IS NOT NULL GROUP BY customer
