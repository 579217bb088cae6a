-- exact percentiles
SELECT h, percentile(ti, 0.25) AS a, percentile(si, 0.9) AS b FROM g GROUP BY h
