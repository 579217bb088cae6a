-- percentile_cont and percentile_disc WITHIN GROUP
SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY ti) AS a, percentile_disc(0.3) WITHIN GROUP (ORDER BY ti DESC) AS b FROM g GROUP BY h
