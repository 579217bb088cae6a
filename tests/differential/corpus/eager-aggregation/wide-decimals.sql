-- decimals whose sums are as wide as sums get
SELECT y.ks, sum(g.d200) AS a, avg(g.d200) AS b, sum(g.d52) AS c, sum(g.d152) AS d, avg(g.d152) AS e FROM g JOIN y ON g.h = y.k GROUP BY y.ks
