-- EXTEND adds columns that later ones may read
FROM t |> EXTEND a + 1 AS a1 |> EXTEND a1 * 2 AS a2 |> SELECT id, a2
