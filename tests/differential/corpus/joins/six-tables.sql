-- a join of six tables
SELECT c.id, o.id AS oid, l.line, p.name, e.name AS seller, r.region
FROM customers c JOIN orders o ON o.customer = c.id JOIN lines l ON l.order_id = o.id
JOIN products p ON p.id = l.product LEFT JOIN employees e ON e.id = c.referrer
LEFT JOIN sales r ON r.units = l.quantity AND r.quarter = 1
WHERE c.country = 'DE' OR p.category = 'seat'
