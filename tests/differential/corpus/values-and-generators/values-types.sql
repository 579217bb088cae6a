-- VALUES finds the common type of a column
SELECT * FROM VALUES (1, 1.5, DATE'2020-01-01'), (3000000000, 2, NULL) AS v(a, b, c)
