-- upper and lower case with special letters
SELECT id, upper(s) AS a, lower(s) AS b FROM e
