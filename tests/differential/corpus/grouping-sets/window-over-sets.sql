-- a window over the rows of ROLLUP
SELECT region, year, sum(units) AS s, rank() OVER (PARTITION BY grouping_id(region, year) ORDER BY sum(units) DESC, region, year) AS r
FROM sales GROUP BY ROLLUP (region, year)
