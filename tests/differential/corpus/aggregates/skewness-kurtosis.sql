-- skewness and kurtosis
-- rounded: 1, 2
SELECT h, skewness(ti) AS a, kurtosis(ti) AS b FROM g GROUP BY h
