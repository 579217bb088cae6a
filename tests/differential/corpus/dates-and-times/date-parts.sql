-- year, month, day, quarter and day of the week
SELECT id, year(dt) AS a, month(dt) AS b, day(dt) AS c, quarter(dt) AS d, dayofweek(dt) AS f, weekday(dt) AS g, dayofyear(dt) AS h, weekofyear(dt) AS i FROM e
