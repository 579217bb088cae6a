-- a correlated count of distinct values
SELECT id, (SELECT count(DISTINCT y.ks) FROM y WHERE y.k = x.k) AS n FROM x
