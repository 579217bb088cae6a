-- grouping by an alias
SELECT CASE WHEN i > 0 THEN 'up' WHEN i < 0 THEN 'down' END AS way, count(*) AS n FROM g GROUP BY way
