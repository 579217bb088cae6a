-- explode in the select list drops empty and NULL arrays
SELECT id, explode(xs) AS x FROM tree
