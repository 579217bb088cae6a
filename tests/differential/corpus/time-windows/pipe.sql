-- a window in an aggregate behind a pipe
FROM orders |> AGGREGATE count(*) AS n GROUP BY window(placed, '7 days')
