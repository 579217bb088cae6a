-- RANGE by an interval around a timestamp
SELECT id, count(*) OVER (PARTITION BY person ORDER BY moment RANGE BETWEEN INTERVAL 30 MINUTES PRECEDING AND CURRENT ROW) AS recent FROM events
