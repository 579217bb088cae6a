-- LEFT JOIN with USING
FROM t |> LEFT JOIN u USING (a) |> SELECT a, t.id, u.id AS uid
