-- HAVING on an alias of an aggregate
SELECT g, count(*) AS n FROM g GROUP BY g HAVING n > 10 AND max(id) > 5
