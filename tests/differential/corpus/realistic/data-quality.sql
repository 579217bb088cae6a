-- a report of NULLs and strange values by union
SELECT 'orders' AS source, 'no customer' AS problem, count(*) AS n FROM orders WHERE customer IS NULL
UNION ALL SELECT 'orders', 'unknown customer', count(*) FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.id WHERE o.customer IS NOT NULL
UNION ALL SELECT 'lines', 'unknown product', count(*) FROM lines WHERE product NOT IN (SELECT id FROM products)
UNION ALL SELECT 'customers', 'empty city', count_if(city = '' OR city IS NULL) FROM customers
