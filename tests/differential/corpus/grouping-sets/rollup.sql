-- ROLLUP of two columns
SELECT a, b, sum(v) AS s, count(*) AS n FROM t GROUP BY ROLLUP (a, b)
