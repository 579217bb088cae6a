-- customers with whom they brought and the first order of those
SELECT r.id, r.name, count(DISTINCT c.id) AS brought, min(o.placed) AS first_order
FROM customers r JOIN customers c ON c.referrer = r.id LEFT JOIN orders o ON o.customer = c.id GROUP BY r.id, r.name
