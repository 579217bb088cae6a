-- a subquery in a subquery, each correlated with its neighbour
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k AND y.v > (SELECT avg(x2.v) FROM x x2 WHERE x2.ks = y.ks)) AS n FROM x
