-- PIVOT with two aggregates and aliases
SELECT * FROM (SELECT region, quarter, amount, units FROM sales) PIVOT (sum(amount) AS s, max(units) AS m FOR quarter IN (1 AS q1, 2 AS q2))
