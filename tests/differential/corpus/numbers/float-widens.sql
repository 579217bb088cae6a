-- a float meets a double and an int
SELECT id, f = d AS a, f + d AS b, f * k AS c, CAST(f AS DOUBLE) AS g FROM e
