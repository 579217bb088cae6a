-- grouping by and ordering by an interval
SELECT dt - gt AS d, count(*) AS n FROM g GROUP BY dt - gt ORDER BY d NULLS LAST
