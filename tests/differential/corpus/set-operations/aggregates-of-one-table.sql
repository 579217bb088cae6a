-- aggregates of one table by the same key, which read one shuffle: each row is there once
SELECT a, count(*) AS n FROM t GROUP BY a UNION ALL SELECT a, max(id) FROM t GROUP BY a
