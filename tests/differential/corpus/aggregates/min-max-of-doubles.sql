-- minimum and maximum of doubles: NaN is the largest
SELECT h, min(gd + 1) AS a, max(gd + 1) AS b, max(d + 300) AS c FROM g GROUP BY h
