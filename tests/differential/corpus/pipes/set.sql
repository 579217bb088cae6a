-- SET replaces columns
FROM t |> SELECT id, a, b |> SET a = coalesce(a, 0), b = upper(b)
