-- the operator >>> shifts zeros in
SELECT id, i >>> 2 AS a, l >>> 3 AS b FROM e
