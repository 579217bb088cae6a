-- the types of literals with a point and an exponent
SELECT 1.5 AS a, 1.50BD AS b, 2.5F AS c, 2.5D AS d, 1e3 AS f, .5 AS g, 100000000000000000000 AS h
