-- a generator as a pipe
FROM tree |> SELECT id, explode(xs) AS item |> WHERE item > 1
