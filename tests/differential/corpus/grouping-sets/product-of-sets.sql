-- CUBE times ROLLUP
SELECT a, b, c, count(*) AS n FROM t GROUP BY CUBE (a), ROLLUP (b, c)
