-- ORDER BY the alias of a window, with a limit
SELECT id, sum(v) OVER (PARTITION BY k) AS s FROM x ORDER BY s DESC NULLS LAST, id LIMIT 9
