-- PIVOT with a distinct count
SELECT * FROM (SELECT year, quarter, region FROM sales) PIVOT (count(DISTINCT region) FOR quarter IN (1, 2, 3, 4)) ORDER BY year
