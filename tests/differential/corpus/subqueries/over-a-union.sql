-- a correlated subquery over UNION ALL
SELECT id, (SELECT count(*) FROM (SELECT k FROM y WHERE y.k = x.k UNION ALL SELECT v FROM y WHERE y.v = x.k) u) AS n FROM x
