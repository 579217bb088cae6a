-- an interval of months and days runs on Spark
-- on: some
SELECT id, dt + make_interval(0, k) AS a FROM e WHERE year(dt) BETWEEN 1900 AND 9000
