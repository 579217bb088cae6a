-- round and bround of decimals and ints
SELECT id, round(d152, 1) AS a, round(d104) AS b, round(n, -1) AS c, bround(d52, 1) AS d FROM e
