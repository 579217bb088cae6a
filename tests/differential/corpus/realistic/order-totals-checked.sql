-- orders whose total is not the sum of their lines
WITH sums AS (SELECT order_id, sum(quantity * price) AS amount FROM lines GROUP BY order_id)
SELECT o.id, o.total, s.amount, o.total - s.amount AS apart FROM orders o FULL JOIN sums s ON o.id = s.order_id
WHERE o.total <> s.amount OR o.id IS NULL OR s.order_id IS NULL
