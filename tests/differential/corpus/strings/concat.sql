-- concat and concat_ws with NULLs
SELECT id, s || '-' || t AS a, concat_ws(',', s, t, 'z') AS b, concat(s, i, dt) AS c FROM e
