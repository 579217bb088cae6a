-- a difference of dates is an interval of days
SELECT id, dt - du AS a, extract(DAY FROM dt - du) AS b FROM e
