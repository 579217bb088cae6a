-- a subquery correlated by a rank, which equal rows share
SELECT o.a, o.r, (SELECT count(*) FROM u WHERE u.id >= o.r) AS n FROM (SELECT a, rank() OVER (ORDER BY a) AS r FROM t) o
