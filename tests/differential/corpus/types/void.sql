-- columns of NULL only
SELECT NULL AS a, coalesce(NULL, NULL) AS b, id FROM x
