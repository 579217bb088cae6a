-- strings compared with dates and timestamps are cast
SELECT id FROM e WHERE dt >= '2024-01-31' OR ts < '1970-01-01 00:00:00'
