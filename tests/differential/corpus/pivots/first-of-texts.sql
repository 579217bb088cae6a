-- PIVOT of the first text, which Spark takes without NULLs
-- on: spark
SELECT * FROM (SELECT country, tier, upper(tier) AS t FROM customers) PIVOT (first(t) FOR tier IN ('gold', 'silver'))
