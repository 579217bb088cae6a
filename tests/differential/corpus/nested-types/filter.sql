-- filter of arrays
SELECT id, filter(ai, x -> x > 0) AS a, filter(sa, (x, i) -> i % 2 = 0) AS b FROM n
