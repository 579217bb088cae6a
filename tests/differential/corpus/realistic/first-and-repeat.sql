-- first orders against repeated ones by month
SELECT date_trunc('MONTH', placed) AS month, count_if(nth = 1) AS new, count_if(nth > 1) AS repeated, sum(total) FILTER (WHERE nth > 1) AS repeated_amount
FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY placed, id) AS nth FROM orders WHERE placed IS NOT NULL AND customer IS NOT NULL)
GROUP BY date_trunc('MONTH', placed)
