-- days added to and subtracted from dates
SELECT id, dt + k AS a, date_add(dt, 3) AS b, date_sub(dt, n) AS c, datediff(dt, du) AS d FROM e WHERE year(dt) BETWEEN 1900 AND 9000
