-- a cast of a text that is no number raises an error
SELECT CAST(num AS INT) AS a FROM e
