-- sums of floats, NaN among them
-- rounded: 1, 2, 3
SELECT y.kb, sum(g.d) AS a, avg(g.gd) AS b, sum(g.f) AS c FROM g JOIN y ON g.h = y.k GROUP BY y.kb
