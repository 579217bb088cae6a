-- a ROLLUP over expressions
SELECT a % 2 AS p, upper(b) AS q, count(*) AS n FROM t GROUP BY ROLLUP (a % 2, upper(b))
