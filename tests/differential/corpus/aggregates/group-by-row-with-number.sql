-- a number in a row of GROUP BY is a constant
SELECT sum(v) FROM t GROUP BY (a, 2)
