-- try_sum and try_avg give NULL on overflow
-- on: some
SELECT h, try_sum(l) AS a, try_avg(d52) AS b FROM g GROUP BY h
