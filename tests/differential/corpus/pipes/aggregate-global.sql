-- AGGREGATE without GROUP BY
FROM sales |> WHERE year = 2023 |> AGGREGATE max(units) AS m, count(*) AS n
