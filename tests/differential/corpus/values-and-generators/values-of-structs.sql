-- a struct alone is a row of VALUES, beside others it is an item
SELECT a, b FROM VALUES struct(1, 'a'), (2, 'b') AS t(a, b)
UNION ALL SELECT i, s.x FROM VALUES (1, named_struct('x', 'q')), (2, NULL) AS u(i, s)
