-- distinct counts of doubles take both zeros, and all NaN, as one value
SELECT count(DISTINCT gd) AS a, count(DISTINCT gf) AS b, count(DISTINCT gd, gf) AS c FROM g
