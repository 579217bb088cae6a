-- explode of a map
SELECT id, explode(m) AS (k2, v2) FROM tree
