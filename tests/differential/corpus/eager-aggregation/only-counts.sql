-- a count of all rows is of either side
SELECT x.s, count(*) AS n FROM x JOIN y ON x.k = y.k GROUP BY x.s
