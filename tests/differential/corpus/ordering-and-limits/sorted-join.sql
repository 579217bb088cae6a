-- an ordered join with a limit on both keys
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k ORDER BY x.id DESC, y.id LIMIT 10
