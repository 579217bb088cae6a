-- doubles as strings run again on Spark where their digits are unclear
-- on: some
SELECT id, CAST(d AS STRING) AS a FROM e
