-- FROM, WHERE and SELECT as pipes
FROM x |> WHERE v > 0 |> SELECT id, v
