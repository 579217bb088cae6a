-- ROLLUP over no rows
SELECT a, b, count(*) AS n FROM none GROUP BY ROLLUP (a, b)
