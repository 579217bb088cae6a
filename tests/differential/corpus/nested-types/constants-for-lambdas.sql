-- values in place of lambdas
SELECT transform(xs, 5) AS a, transform(xs, id) AS b, filter(xs, true) AS c, exists(xs, false) AS d, aggregate(xs, 0, id) AS e, transform_values(m, 'x') AS f, zip_with(xs, ys, 0) AS g FROM tree
