-- an overflow of a bigint raises an error
SELECT id, l * m AS a FROM e
