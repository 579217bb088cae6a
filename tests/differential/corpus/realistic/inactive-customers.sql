-- customers without a paid order in the last year of the data
SELECT c.id, c.name FROM customers c
WHERE NOT EXISTS (
  SELECT 1 FROM orders o WHERE o.customer = c.id AND o.status = 'paid' AND o.placed >= (SELECT max(placed) - INTERVAL 365 DAYS FROM orders))
