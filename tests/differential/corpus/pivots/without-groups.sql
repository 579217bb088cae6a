-- PIVOT without grouping columns
SELECT * FROM (SELECT quarter, units FROM sales) PIVOT (sum(units) FOR quarter IN (1, 2, 9))
