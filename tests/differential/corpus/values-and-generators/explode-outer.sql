-- explode_outer keeps them
SELECT id, explode_outer(xs) AS x FROM tree
