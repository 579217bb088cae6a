-- HAVING without GROUP BY
SELECT sum(ti) AS s FROM g HAVING count(*) > 10
