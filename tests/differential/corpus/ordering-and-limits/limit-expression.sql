-- LIMIT by a constant expression
SELECT id FROM x ORDER BY id LIMIT 2 * 2 + 1
