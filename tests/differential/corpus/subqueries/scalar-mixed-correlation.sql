-- a scalar subquery correlated by equality and inequality
SELECT id, (SELECT min(y.id) FROM y WHERE y.k = x.k AND y.v >= x.v) AS next_id FROM x
