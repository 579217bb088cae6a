-- an inner join on two keys of two types
SELECT x.id, y.id, y.w FROM x JOIN y ON x.ks = y.ks AND x.kt = y.kt
