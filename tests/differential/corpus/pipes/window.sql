-- a window in EXTEND
FROM x |> EXTEND row_number() OVER (PARTITION BY k ORDER BY id) AS r |> WHERE r = 1 |> SELECT id, k
