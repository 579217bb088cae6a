-- GROUP BY the position of an input column
FROM (SELECT k, ks, v FROM l) |> AGGREGATE sum(v) AS total GROUP BY 2, (1)
