-- the bounds of BETWEEN hold comparisons
SELECT id, b BETWEEN false AND true = (id > 5) AS a, NOT b BETWEEN b = true AND b AS c FROM g
