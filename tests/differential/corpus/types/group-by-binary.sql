-- grouping by a binary and a boolean
SELECT bin, b, count(*) AS n FROM g GROUP BY bin, b
