-- comparisons of strings are by bytes
SELECT id, s < t AS a, s = t AS b, greatest(s, t) AS c FROM e
