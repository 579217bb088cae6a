-- make_date of month 13 raises an error
SELECT make_date(2024, k + 1, 28) AS a FROM e WHERE k = 60
