-- grouping by an expression that the select list repeats
SELECT h % 2 AS odd, length(g) AS len, count(*) AS n FROM g GROUP BY h % 2, length(g)
