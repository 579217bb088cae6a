-- last_day and next_day
SELECT id, last_day(dt) AS a, next_day(dt, 'MON') AS b FROM e WHERE year(dt) < 9000
