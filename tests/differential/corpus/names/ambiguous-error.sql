-- an ambiguous name is an error
SELECT id FROM x JOIN y ON x.k = y.k
