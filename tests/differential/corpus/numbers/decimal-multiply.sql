-- precision and scale of decimal products
SELECT id, d52 * d52 AS a, d152 * d52 AS b, d40 * k AS c FROM e
