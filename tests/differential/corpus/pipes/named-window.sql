-- a WINDOW clause behind SELECT and EXTEND
FROM t |> EXTEND sum(v) OVER w AS x WINDOW w AS (PARTITION BY a) |> SELECT id, x, count(*) OVER k AS y WINDOW k AS (PARTITION BY b)
