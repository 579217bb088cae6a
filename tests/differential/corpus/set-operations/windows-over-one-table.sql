-- windows over one table by the same key, beside an aggregate and the rows themselves
SELECT a, max(id) OVER (PARTITION BY a) AS n FROM t UNION ALL SELECT a, min(id) OVER (PARTITION BY a) FROM t UNION ALL SELECT a, count(id) FROM t GROUP BY a
