-- try_avg of decimals runs on Spark: its overflow is NULL
-- on: some
SELECT h, try_avg(d52) AS b FROM g GROUP BY h
