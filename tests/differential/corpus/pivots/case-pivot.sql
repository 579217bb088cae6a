-- a pivot by CASE in aggregates
SELECT region, sum(CASE WHEN quarter = 1 THEN units ELSE 0 END) AS q1, count(CASE WHEN quarter = 2 THEN 1 END) AS q2, max(CASE WHEN quarter > 2 THEN amount END) AS later
FROM sales GROUP BY region
