-- ucase, lcase, character_length, char are other names
SELECT id, ucase(ks) AS a, lcase(s) AS b, character_length(s) AS c, char(65 + abs(v)) AS d FROM x
