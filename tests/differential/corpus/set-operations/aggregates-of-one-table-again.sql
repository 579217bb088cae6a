-- three aggregates of one table, and one above them
SELECT a, n, count(*) AS times FROM (SELECT a, min(id) AS n FROM t GROUP BY a UNION ALL SELECT a, max(id) FROM t GROUP BY a UNION ALL SELECT a, count(b) FROM t GROUP BY a) GROUP BY a, n
