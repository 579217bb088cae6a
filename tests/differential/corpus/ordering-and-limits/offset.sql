-- LIMIT with OFFSET, and OFFSET past the end gives no rows
SELECT id FROM x ORDER BY id LIMIT 3 OFFSET 100
