-- arrays, maps and structs within VALUES; a map without entries has no type, which runs on Spark
-- on: some
SELECT id, xs[0] AS x0, m['k'] AS mk, s.b AS sb FROM VALUES (1, array(1, 2), map('k', 1), struct(1 AS a, 'x' AS b)), (2, array(), map(), NULL) AS v(id, xs, m, s) WHERE id = 1
