-- an int key meets a bigint key
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.kl
