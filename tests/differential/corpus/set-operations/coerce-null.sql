-- a NULL column takes the type of the other side
SELECT NULL AS day, id FROM t UNION ALL SELECT day, NULL FROM u
