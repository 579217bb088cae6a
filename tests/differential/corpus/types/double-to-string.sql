-- doubles and floats as strings
SELECT id, CAST(d AS STRING) AS a, CAST(f AS STRING) AS b FROM e
