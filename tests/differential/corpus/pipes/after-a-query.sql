-- pipes after a whole query and in a subquery
SELECT id, k FROM x WHERE v > 0 |> WHERE k IN (FROM y |> WHERE v < 0 |> SELECT k) |> AGGREGATE count(*) AS n GROUP BY k
