-- dayname and monthname
SELECT id, dayname(dt) AS a, monthname(ts) AS b FROM e
