-- a WINDOW clause behind SELECT
FROM t |> SELECT id, sum(v) OVER w AS x WINDOW w AS (PARTITION BY a)
