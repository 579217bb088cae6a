-- a CTE that reads another
WITH a AS (SELECT id, k FROM x WHERE v > 0), b AS (SELECT k, count(*) AS n FROM a GROUP BY k), c AS (SELECT max(n) AS m FROM b) SELECT b.k FROM b, c WHERE b.n = c.m
