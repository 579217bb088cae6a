-- a recursive CTE runs on Spark as a whole
-- on: spark
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 10) SELECT n FROM r
