-- DISTINCT of several column sets without GROUP BY
SELECT count(DISTINCT g) AS a, count(DISTINCT gc) AS b, max(DISTINCT i) AS c, sum(si) AS d FROM g
