-- a WITH inside a CTE
WITH q AS (WITH r AS (SELECT k FROM x WHERE v > 2) SELECT k, count(*) AS n FROM r GROUP BY k) SELECT * FROM q
