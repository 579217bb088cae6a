-- UNION ALL keeps duplicates
SELECT a, b FROM t UNION ALL SELECT a, b FROM u
