-- exact percentiles by an array
SELECT h, percentile(ti, array(0.0, 0.5, 1.0)) AS a FROM g GROUP BY h
