-- a CTE that nothing reads
WITH never AS (SELECT 1 / 0 AS n FROM x) SELECT count(*) AS n FROM y
