-- a union of many branches over one table
SELECT 1 AS n, a FROM t UNION ALL SELECT 2, a FROM t WHERE a = 1 UNION ALL SELECT 3, v FROM t UNION ALL SELECT 4, id FROM t UNION ALL SELECT 5, NULL
