-- casts between numbers
SELECT id, CAST(k AS TINYINT) AS a, CAST(d52 AS INT) AS b, CAST(n AS DECIMAL(10, 3)) AS c, CAST(d152 AS DOUBLE) AS d, CAST(k AS FLOAT) AS f FROM e
