-- ILIKE and RLIKE
SELECT id, s ILIKE 'A%' AS a, s RLIKE '^[a-c]+$' AS b FROM e
