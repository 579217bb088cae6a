-- trim of blanks and of given characters
SELECT id, trim(s) AS a, ltrim(s) AS b, rtrim(s) AS c, trim(BOTH 'ab' FROM s) AS d FROM e
