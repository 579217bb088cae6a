-- a CTE in both branches of a union
WITH q AS (SELECT k, v FROM x WHERE kb) SELECT k FROM q UNION ALL SELECT v FROM q
