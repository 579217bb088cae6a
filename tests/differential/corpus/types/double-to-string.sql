-- doubles of all sizes as strings
SELECT id, CAST(d AS STRING) AS a FROM e
