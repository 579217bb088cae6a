-- an index outside an array raises an error
SELECT id, ai[3] AS a FROM n
