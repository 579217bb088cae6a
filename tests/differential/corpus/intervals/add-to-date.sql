-- intervals added to dates
SELECT id, dt + INTERVAL 1 MONTH AS a, dt - INTERVAL 3 DAYS AS b, dt + INTERVAL '1' YEAR AS c, dt + INTERVAL 6 HOURS AS d FROM e WHERE year(dt) BETWEEN 1900 AND 9000
