-- items of maps by key
SELECT id, mi[1] AS a, ms['k'] AS b, element_at(mi, 7) AS c, map_contains_key(ms, '') AS d FROM n
