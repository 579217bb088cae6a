-- the median of ints and decimals
SELECT g, median(ti) AS a, median(h) AS b FROM g GROUP BY g
