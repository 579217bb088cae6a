-- NULL is a group
SELECT g, h, count(*) AS n FROM g GROUP BY g, h
