-- DROP removes columns
FROM t |> DROP c, d, day
