-- readings in buckets of a quarter of an hour
SELECT sensor, date_trunc('HOUR', taken) AS hour, minute(taken) div 15 AS bucket, count(*) AS n, min(degrees + 100) AS lo, max(degrees + 100) AS hi
FROM readings GROUP BY sensor, date_trunc('HOUR', taken), minute(taken) div 15
