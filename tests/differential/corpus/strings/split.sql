-- split, split_part and substring_index
SELECT id, split(s, 'b') AS a, split_part(s, '.', 2) AS b, substring_index(s, '.', 1) AS c FROM e
