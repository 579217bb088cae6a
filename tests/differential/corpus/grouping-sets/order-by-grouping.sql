-- ORDER BY grouping() puts totals last
SELECT region, sum(units) AS s FROM sales GROUP BY ROLLUP (region) ORDER BY grouping(region), region NULLS FIRST
