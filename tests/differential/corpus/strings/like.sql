-- LIKE with wildcards, escapes and line breaks
SELECT id, s LIKE 'a%' AS a, s LIKE '_' AS b, s LIKE '100\%' AS c, s LIKE '%\_%' AS d, s NOT LIKE '%b%' AS f FROM e
