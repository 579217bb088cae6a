-- HAVING makes one row even if nothing is aggregated
SELECT 1 AS a FROM x HAVING true
