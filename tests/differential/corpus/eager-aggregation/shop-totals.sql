-- sales by the tier of the customer
SELECT c.tier, sum(o.total) AS total, count(*) AS n, avg(o.total) AS mean, max(o.placed) AS latest FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.tier
