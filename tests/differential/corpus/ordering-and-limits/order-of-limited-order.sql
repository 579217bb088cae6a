-- an order that a limit below has made
SELECT id, v FROM (SELECT id, v, k FROM x ORDER BY v, id LIMIT 12) ORDER BY v, id LIMIT 5
