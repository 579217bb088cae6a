-- HAVING reads numbers and texts as booleans
SELECT a, count(v) FROM t GROUP BY a HAVING count(v)
