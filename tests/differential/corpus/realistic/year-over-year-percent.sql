-- growth in percent, of a quotient that loses digits of its scale
WITH monthly AS (SELECT year(placed) AS y, month(placed) AS m, sum(total) AS amount FROM orders WHERE placed IS NOT NULL GROUP BY year(placed), month(placed))
SELECT a.y, a.m, a.amount, b.amount AS before, round((a.amount - b.amount) / nullif(b.amount, 0) * 100, 1) AS growth
FROM monthly a LEFT JOIN monthly b ON b.m = a.m AND b.y = a.y - 1
