-- a qualified star of the input of a pipe
FROM t |> JOIN LATERAL (SELECT t.*, t.id + 1 AS z) AS y |> SELECT y.*
