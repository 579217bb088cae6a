-- a CTE used once
WITH q AS (SELECT k, sum(v) AS s FROM x GROUP BY k) SELECT k FROM q WHERE s > 2
