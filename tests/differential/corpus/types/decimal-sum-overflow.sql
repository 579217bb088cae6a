-- a sum beyond decimal(38) raises an error
SELECT sum(CAST(d384 AS DECIMAL(38, 4)) * 10000000) AS s FROM g
