-- a column and a ROLLUP
SELECT region, year, quarter, sum(units) AS s FROM sales GROUP BY region, ROLLUP (year, quarter)
