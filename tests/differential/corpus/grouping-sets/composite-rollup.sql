-- a ROLLUP over a pair of columns
SELECT year, quarter, region, count(*) AS n FROM sales GROUP BY ROLLUP ((year, quarter), region)
