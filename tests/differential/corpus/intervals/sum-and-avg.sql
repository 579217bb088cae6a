-- sums and averages of intervals
SELECT k, sum(dt - du) AS a, avg(dt - du) AS b, max(ts - tu) AS c FROM e GROUP BY k
