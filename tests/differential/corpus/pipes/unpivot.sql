-- UNPIVOT as a pipe
FROM wide |> SELECT id, q1, q2 |> UNPIVOT (v FOR n IN (q1, q2))
