-- a set operation as a derived table with a filter
SELECT b, count(*) AS n FROM (SELECT a, b FROM t UNION ALL SELECT a, b FROM u) q WHERE a > 0 GROUP BY b
