-- a LATERAL VIEW of a LATERAL VIEW
SELECT id, inner_x FROM tree LATERAL VIEW explode(nested) a AS xs2 LATERAL VIEW explode(xs2) b AS inner_x
