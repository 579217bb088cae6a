-- arrays and maps within VALUES
SELECT id, xs[0] AS x0, m['k'] AS mk FROM VALUES (1, array(1, 2), map('k', 1)), (2, array(5), map('j', NULL, 'k', NULL)) AS v(id, xs, m)
