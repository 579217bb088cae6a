-- + is an operator of numbers; a text becomes a double
SELECT id, + k AS a, - + k AS b, + num AS c, + d152 AS f, + 1 AS g, 1 + + k AS h FROM e WHERE num RLIKE '^-?[0-9]+$'
