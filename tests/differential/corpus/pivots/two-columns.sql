-- PIVOT over a pair of columns
SELECT * FROM (SELECT year, quarter, region, units FROM sales) PIVOT (sum(units) FOR (quarter, region) IN ((1, 'east') AS a, (2, 'west') AS b))
