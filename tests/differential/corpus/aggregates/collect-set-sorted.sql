-- collect_set drops NULLs and duplicates
SELECT g, sort_array(collect_set(h)) AS a, sort_array(collect_set(s)) AS b FROM g GROUP BY g
