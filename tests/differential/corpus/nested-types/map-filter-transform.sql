-- map_filter, transform_values and map_zip_with
SELECT id, map_filter(mi, (k, v) -> v <> '') AS a, transform_values(ms, (k, v) -> length(k) + coalesce(v % 2, 0)) AS b FROM n
