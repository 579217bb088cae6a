-- a qualified star of the input of a pipe
FROM (SELECT id, a FROM t) AS x |> JOIN LATERAL (SELECT x.*, x.id + 1 AS z) AS y |> SELECT y.*
