-- a cast of a text that is no date raises an error
SELECT CAST(s AS DATE) AS d FROM e WHERE s = 'abc'
