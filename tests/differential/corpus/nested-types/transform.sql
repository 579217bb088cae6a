-- transform with an element and an index
SELECT id, transform(sa, x -> x || '!') AS a, transform(al, (x, i) -> x % 10 + i) AS b FROM n
