-- array_join and split
SELECT id, array_join(sa, '|', '?') AS a, split(s, ',') AS b FROM n
