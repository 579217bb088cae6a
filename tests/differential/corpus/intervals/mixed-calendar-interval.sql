-- an interval of months and days runs on Spark
SELECT id, dt + make_interval(0, k) AS a FROM e WHERE year(dt) BETWEEN 1900 AND 9000
