-- an inner CTE hides an outer one of its name
WITH q AS (SELECT 1 AS n) SELECT * FROM (WITH q AS (SELECT 2 AS n) SELECT n FROM q) UNION ALL SELECT n FROM q
