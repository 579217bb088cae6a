-- a subquery correlated by what a group happens to have first is asked of Spark
-- on: spark
SELECT o.a, (SELECT count(*) FROM u WHERE u.id >= o.f) AS n FROM (SELECT a, first(a) AS f FROM t GROUP BY a) o
