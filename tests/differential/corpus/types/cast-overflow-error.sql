-- a cast out of range raises an error
SELECT CAST(l AS INT) AS a FROM e
