-- lpad, rpad, repeat and space
SELECT id, lpad(s, 5, '*') AS a, rpad(s, 4, 'xy') AS b, repeat(s, 2) AS c, space(k) AS d FROM e
