-- growth against the same month of the year before
-- rounded: 4
WITH monthly AS (SELECT year(placed) AS y, month(placed) AS m, sum(total) AS amount FROM orders WHERE placed IS NOT NULL GROUP BY year(placed), month(placed))
SELECT a.y, a.m, a.amount, b.amount AS before, (a.amount - b.amount) / double(b.amount) AS growth
FROM monthly a LEFT JOIN monthly b ON b.m = a.m AND b.y = a.y - 1
