-- orders by number of lines, with orders that have none
SELECT lines, count(*) AS orders, sum(total) AS amount
FROM (SELECT o.id, o.total, count(l.line) AS lines FROM orders o LEFT JOIN lines l ON l.order_id = o.id GROUP BY o.id, o.total) GROUP BY lines
