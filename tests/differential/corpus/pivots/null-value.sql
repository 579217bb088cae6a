-- PIVOT with NULL among the values
SELECT * FROM (SELECT year, region, units FROM sales) PIVOT (count(units) FOR region IN ('east', NULL, ''))
