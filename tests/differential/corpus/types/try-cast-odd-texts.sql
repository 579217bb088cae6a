-- TRY_CAST of odd texts to dates
SELECT id, TRY_CAST(s AS DATE) AS c FROM e
