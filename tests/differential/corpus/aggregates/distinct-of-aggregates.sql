-- SELECT DISTINCT over groups
SELECT DISTINCT count(*) > 15 AS large, max(h) AS h FROM g GROUP BY g
