-- grouping by ordinals
SELECT h, b, min(dt) AS first_day FROM g GROUP BY 1, 2
