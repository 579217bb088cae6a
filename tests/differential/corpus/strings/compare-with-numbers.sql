-- a string compared with an int is cast
SELECT id FROM e WHERE try_cast(num AS INT) > 0 AND '12' = 12
