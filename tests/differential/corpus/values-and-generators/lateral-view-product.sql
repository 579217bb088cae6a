-- two LATERAL VIEWs side by side
SELECT id, x, y FROM tree LATERAL VIEW explode(xs) a AS x LATERAL VIEW explode(ys) b AS y
