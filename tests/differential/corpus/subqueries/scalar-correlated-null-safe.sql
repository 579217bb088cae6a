-- a scalar subquery correlated by null-safe equality
SELECT id, (SELECT max(y.v) FROM y WHERE y.ks <=> x.ks) AS m FROM x
