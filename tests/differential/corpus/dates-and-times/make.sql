-- make_date and make_timestamp
SELECT id, make_date(2024, k + 1, 28) AS a, make_timestamp(2024, 2, 29, k, 4, 5.25) AS b FROM e WHERE k BETWEEN 0 AND 10
