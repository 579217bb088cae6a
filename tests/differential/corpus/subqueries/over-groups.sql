-- a correlated subquery that groups and filters its groups
SELECT id, (SELECT max(n) FROM (SELECT y.ks, count(*) AS n FROM y WHERE y.k = x.k GROUP BY y.ks) q WHERE n > 1) AS most FROM x
