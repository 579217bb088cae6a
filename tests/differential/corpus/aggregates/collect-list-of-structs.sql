-- collect_list of structs, sorted afterwards
SELECT h, sort_array(collect_list(struct(id, g))) AS a FROM g WHERE id < 30 GROUP BY h
