-- SELECT without FROM
SELECT 1 AS one, 'a' || 'b' AS ab, CAST(NULL AS INT) AS nothing, true AND NULL AS unknown
