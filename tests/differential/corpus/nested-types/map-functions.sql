-- keys, values, entries and size of maps
SELECT id, map_keys(mi) AS a, map_values(ms) AS b, map_entries(mi) AS c, cardinality(ms) AS d FROM n
