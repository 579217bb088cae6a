-- collect_list keeps duplicates and drops NULLs
SELECT h, sort_array(collect_list(g)) AS a, array_size(collect_list(i)) AS b FROM g GROUP BY h
