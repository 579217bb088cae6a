-- explicit GROUPING SETS
SELECT a, b, day, count(*) AS n FROM t GROUP BY GROUPING SETS ((a, b), (day), ())
