-- floats of all sizes as strings
SELECT id, CAST(f AS STRING) AS b FROM e
