-- TRY_CAST of odd texts to dates runs again on Spark
-- on: some
SELECT id, TRY_CAST(s AS DATE) AS c FROM e
