-- columns of NULL only
SELECT NULL AS a, array() AS b, map() AS c, count(NULL) AS d FROM x
