-- UNION drops duplicates and joins NULLs
SELECT a, b FROM t UNION SELECT a, b FROM u
