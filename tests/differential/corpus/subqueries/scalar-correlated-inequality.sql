-- a scalar subquery correlated by an inequality
SELECT id, (SELECT count(*) FROM y WHERE y.v > x.v) AS above FROM x
