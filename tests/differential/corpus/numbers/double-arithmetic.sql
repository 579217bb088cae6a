-- NaN, infinity and -0.0 in arithmetic
SELECT id, d + d2 AS a, d * -1 AS b, d - d AS c, f + 1 AS f1, d / 2 AS h FROM e
