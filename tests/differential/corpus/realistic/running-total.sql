-- a running total of each customer by time
SELECT customer, id, total, sum(total) OVER (PARTITION BY customer ORDER BY placed NULLS FIRST, id ROWS UNBOUNDED PRECEDING) AS so_far
FROM orders WHERE status = 'paid' ORDER BY customer NULLS FIRST, placed NULLS FIRST, id
