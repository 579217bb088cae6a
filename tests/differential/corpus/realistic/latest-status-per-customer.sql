-- each customer with the latest order by a lateral join
SELECT c.id, c.name, o.status, o.total FROM customers c LEFT JOIN LATERAL (
  SELECT status, total FROM orders WHERE orders.customer = c.id AND placed IS NOT NULL ORDER BY placed DESC, id DESC LIMIT 1) o
