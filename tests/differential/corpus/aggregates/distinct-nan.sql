-- a distinct count of NaN, 0.0 and -0.0 runs on Spark
-- on: some
SELECT count(DISTINCT gd) AS a, count(DISTINCT gf) AS b, count(DISTINCT gd, gf) AS c FROM g
