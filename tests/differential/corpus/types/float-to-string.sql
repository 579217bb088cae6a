-- floats as strings run again on Spark where their digits are unclear
-- on: some
SELECT id, CAST(f AS STRING) AS b FROM e
