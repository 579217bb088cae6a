-- PIVOT as a pipe
FROM sales |> SELECT year, quarter, units |> PIVOT (sum(units) FOR quarter IN (1, 2, 4))
