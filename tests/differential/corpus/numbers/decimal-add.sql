-- precision and scale of decimal sums
SELECT id, d52 + d152 AS a, d104 - d52 AS b, d52 + k AS c, d200 + 1 AS d FROM e
