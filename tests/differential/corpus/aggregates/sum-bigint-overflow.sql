-- a sum that overflows bigint raises an error
SELECT sum(l * 1000) AS s FROM (SELECT 9223372036854775 AS l FROM g)
