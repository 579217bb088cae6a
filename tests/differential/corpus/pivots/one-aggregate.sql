-- PIVOT with one aggregate
SELECT * FROM (SELECT year, quarter, amount FROM sales) PIVOT (sum(amount) FOR quarter IN (1, 2, 3, 4))
