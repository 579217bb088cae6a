-- reverse
SELECT id, reverse(s) AS a, reverse(t) = s AS b FROM e
