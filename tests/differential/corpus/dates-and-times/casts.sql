-- casts among dates, timestamps and strings
SELECT id, CAST(dt AS TIMESTAMP) AS a, CAST(ts AS DATE) AS b, CAST(dt AS STRING) AS c, CAST(tn AS STRING) AS d, CAST('2024-02-29' AS DATE) AS f FROM e
