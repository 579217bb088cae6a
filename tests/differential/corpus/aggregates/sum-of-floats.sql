-- a sum of floats is a double
-- rounded: 1, 2
SELECT h, sum(f) AS a, sum(d) AS b FROM g GROUP BY h
