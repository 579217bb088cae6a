-- DISTINCT of several column sets in one query
SELECT g, count(DISTINCT h) AS a, count(DISTINCT b, gt) AS b, sum(DISTINCT ti) AS c, count(*) AS n FROM g GROUP BY g
