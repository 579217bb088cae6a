-- a scalar subquery correlated under OR
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k OR (y.ks = x.ks AND y.kb)) AS n FROM x
