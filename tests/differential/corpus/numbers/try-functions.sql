-- try_divide, try_add and try_multiply give NULL
SELECT id, try_divide(n, k) AS a, try_add(i, 1) AS b, try_multiply(l, m) AS c FROM e
