-- LATERAL VIEW as a pipe
FROM tree |> LATERAL VIEW explode(xs) e AS item |> SELECT id, item
