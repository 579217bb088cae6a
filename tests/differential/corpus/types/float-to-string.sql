-- floats as strings run on Spark: their shortest digits are not proven
-- on: some
SELECT id, CAST(f AS STRING) AS b FROM e
