-- the empty set alone without aggregates
SELECT 1 AS a FROM x GROUP BY GROUPING SETS (())
