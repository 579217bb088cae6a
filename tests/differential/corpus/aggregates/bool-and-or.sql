-- bool_and, bool_or, every, some
SELECT g, bool_and(b) AS a, bool_or(b) AS b, every(i < 100) AS c, some(i IS NULL) AS d FROM g GROUP BY g
