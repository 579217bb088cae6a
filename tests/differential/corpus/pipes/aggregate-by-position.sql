-- GROUP BY the position of an input column
FROM (SELECT a, b, v FROM t) |> AGGREGATE sum(v) AS total GROUP BY 2, (1)
