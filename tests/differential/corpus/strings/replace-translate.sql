-- replace, translate and overlay
SELECT id, replace(s, 'b', 'XX') AS a, translate(s, 'abc', 'x') AS b, overlay(s PLACING '__' FROM 2) AS c FROM e
