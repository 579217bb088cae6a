-- labels for subtotals by CASE and grouping()
SELECT CASE WHEN grouping(region) = 1 THEN 'all regions' ELSE coalesce(region, 'unknown') END AS region,
  CASE WHEN grouping(year) = 1 THEN 'all years' ELSE string(year) END AS year, sum(units) AS s
FROM sales GROUP BY ROLLUP (region, year)
