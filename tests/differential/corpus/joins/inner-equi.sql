-- an inner join on equality drops NULL keys
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k
