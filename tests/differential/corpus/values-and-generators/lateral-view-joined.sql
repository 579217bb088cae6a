-- a LATERAL VIEW of a joined table
SELECT tree.id, t.id AS tid, x FROM tree JOIN t ON t.a = tree.k LATERAL VIEW explode(xs) a AS x WHERE x > 1
