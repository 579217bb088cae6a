-- the largest groups
SELECT g, count(*) AS n FROM g GROUP BY g ORDER BY n DESC, g LIMIT 2
