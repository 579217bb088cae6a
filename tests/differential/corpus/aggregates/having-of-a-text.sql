-- HAVING reads a text as a boolean
SELECT a, count(v) FROM t GROUP BY a HAVING 'yes'
