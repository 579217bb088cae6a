-- a WINDOW clause behind EXTEND
FROM t |> EXTEND sum(v) OVER w AS x WINDOW w AS (PARTITION BY a)
