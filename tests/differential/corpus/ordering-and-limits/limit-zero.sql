-- LIMIT 0 is empty
SELECT id, v FROM x LIMIT 0
