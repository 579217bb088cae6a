-- sums that overflow for some groups
SELECT y.s, sum(g.d384) AS a FROM g JOIN y ON g.h = y.k WHERE g.id < 20 GROUP BY y.s
