-- a scalar subquery correlated by equality
SELECT id, (SELECT sum(y.w) FROM y WHERE y.k = x.k) AS total FROM x
