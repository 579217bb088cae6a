-- the same set twice gives its rows twice
SELECT a, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), (a))
