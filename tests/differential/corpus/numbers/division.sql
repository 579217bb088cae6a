-- division gives doubles or decimals
SELECT id, n / 4 AS a, d52 / 3 AS b, d152 / 7 AS c FROM e
