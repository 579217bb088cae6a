-- a string column against a number is cast to it
SELECT id, num || 1 AS a, try_cast(num AS DOUBLE) > 1 AS b FROM e
