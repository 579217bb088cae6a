-- a moving average of readings within an hour
-- rounded: 2
SELECT sensor, taken, avg(degrees) OVER (PARTITION BY sensor ORDER BY taken RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS mean, count(degrees) OVER (PARTITION BY sensor ORDER BY taken RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS n
FROM readings
