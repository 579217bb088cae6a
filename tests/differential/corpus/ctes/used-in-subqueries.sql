-- a CTE used in FROM and in a subquery
WITH q AS (SELECT k, sum(w) AS s FROM x GROUP BY k) SELECT k, s FROM q WHERE s = (SELECT max(s) FROM q)
