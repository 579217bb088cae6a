-- LATERAL VIEW
SELECT id, e.x FROM tree LATERAL VIEW explode(xs) e AS x
