-- add_months at the end of a month
SELECT id, add_months(dt, k) AS a, add_months(DATE'2024-01-31', k) AS b FROM e WHERE year(dt) < 9000
