-- values in place of lambdas
SELECT transform(xs, 5), transform(xs, id), filter(xs, true), exists(xs, false), aggregate(xs, 0, id), transform_values(m, 'x'), zip_with(xs, ys, 0) FROM tree
