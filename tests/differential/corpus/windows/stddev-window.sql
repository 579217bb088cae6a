-- a standard deviation as a window runs on Spark
-- on: some
-- rounded: 1
SELECT id, stddev_samp(ti) OVER (PARTITION BY h) AS d FROM g
