-- maps from arrays, entries and text
SELECT k, map('k', k, 'j', j) AS a, map_from_arrays(array('x', 'y'), array(k, j)) AS b, str_to_map('a:1,b:2') AS c FROM n WHERE id < 25
