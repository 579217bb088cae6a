-- an anti join on an inequality alone
SELECT x.id FROM x LEFT ANTI JOIN y ON x.v < y.v
