-- positions in ROLLUP and CUBE beside a plain one
SELECT a, b, day, count(*) FROM t GROUP BY (1), ROLLUP((2), (day, 2)), CUBE((3))
