-- DISTINCT of several column sets without GROUP BY
-- on: some
SELECT count(DISTINCT g) AS a, count(DISTINCT gd) AS b, max(DISTINCT i) AS c, sum(si) AS d FROM g
