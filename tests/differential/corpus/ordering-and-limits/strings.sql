-- strings are ordered by bytes
SELECT s, id FROM e ORDER BY s, id
