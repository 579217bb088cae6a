-- regexp_replace and regexp_extract
SELECT id, regexp_replace(s, '[aeiou]', '*') AS a, regexp_extract(s, '([a-z])([a-z])', 2) AS b FROM e
