-- lag and lead that skip NULLs
SELECT id, lag(v) IGNORE NULLS OVER (ORDER BY id) AS a, lead(v, 2) IGNORE NULLS OVER (ORDER BY id) AS b FROM x
