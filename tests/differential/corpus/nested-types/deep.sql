-- a map within a struct within an array
SELECT id, transform(deep, q -> map_keys(q.m)) AS a, filter(deep, q -> q.x = 1) AS b FROM n
