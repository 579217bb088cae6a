-- a running total that starts again every year
SELECT CAST(placed AS DATE) AS day, id, sum(total) OVER (PARTITION BY year(placed) ORDER BY placed, id) AS this_year
FROM orders WHERE placed IS NOT NULL
