-- HAVING on grouping()
SELECT region, year, sum(amount) AS s FROM sales GROUP BY CUBE (region, year) HAVING grouping(region) = 0 AND sum(amount) > 3
