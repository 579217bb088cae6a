-- a distinct sum and count of one column
SELECT g, count(DISTINCT h) AS n, sum(DISTINCT h) AS s, avg(DISTINCT h) AS a FROM g GROUP BY g
