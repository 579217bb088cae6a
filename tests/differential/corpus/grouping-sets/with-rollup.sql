-- WITH ROLLUP as in Hive
SELECT year, quarter, sum(amount) AS s FROM sales GROUP BY year, quarter WITH ROLLUP
