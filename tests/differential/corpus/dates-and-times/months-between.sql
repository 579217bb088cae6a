-- months_between and timestampdiff
SELECT id, months_between(dt, du) AS a, timestampdiff(DAY, ts, tu) AS b, datediff(MONTH, dt, du) AS c FROM e
