-- gaps between the keys of a table
SELECT id + 1 AS gap_from, next_id - 1 AS gap_to
FROM (SELECT order_id AS id, lead(order_id) OVER (ORDER BY order_id) AS next_id FROM (SELECT DISTINCT order_id FROM lines WHERE order_id % 5 <> 0))
WHERE next_id - id > 1
