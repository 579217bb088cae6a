-- an order turned round above a limit
SELECT id, v FROM (SELECT id, v FROM x ORDER BY v NULLS LAST, id LIMIT 12) ORDER BY v NULLS FIRST, id
