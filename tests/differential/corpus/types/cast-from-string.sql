-- casts of strings with blanks and signs
SELECT CAST(' 12 ' AS INT) AS a, CAST('-1.50' AS DECIMAL(5, 1)) AS b, CAST('1e3' AS DOUBLE) AS c, CAST('true' AS BOOLEAN) AS d, CAST('NaN' AS DOUBLE) AS f
