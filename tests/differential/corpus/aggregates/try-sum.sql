-- try_sum gives NULL on overflow
SELECT h, try_sum(l * 2) AS a, try_sum(bigint(9223372036854775800)) AS b FROM g GROUP BY h
