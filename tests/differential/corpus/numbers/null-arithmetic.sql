-- NULL in every operator
SELECT id, k + NULL AS a, NULL % n AS b, NULL = NULL AS c, NULL <=> k AS d, k IN (NULL, 1) AS f FROM e
