-- an overflow of an int raises an error
SELECT id, i + 1 AS a FROM e
