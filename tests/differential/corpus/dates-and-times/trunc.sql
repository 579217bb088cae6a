-- trunc of dates and date_trunc of timestamps
SELECT id, trunc(dt, 'MM') AS a, trunc(dt, 'QUARTER') AS b, date_trunc('HOUR', ts) AS c, date_trunc('WEEK', tn) AS d FROM e WHERE year(dt) > 1600
