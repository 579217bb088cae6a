-- a distinct count in every set
SELECT a, b, count(DISTINCT c) AS n, sum(DISTINCT v) AS s FROM t GROUP BY ROLLUP (a, b)
