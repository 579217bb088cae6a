-- NaN is equal to itself and above all
SELECT id, d = d2 AS a, d > d2 AS b, d = 0.0D AS c, isnan(d) AS n, nanvl(d, 0.0D) AS v FROM e
