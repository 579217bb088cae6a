-- LATERAL VIEW OUTER
SELECT id, p, y FROM tree LATERAL VIEW OUTER posexplode(ys) e AS p, y
