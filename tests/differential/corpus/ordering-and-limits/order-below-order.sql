-- an order below another order
SELECT id, k FROM (SELECT id, k, v FROM x ORDER BY v) ORDER BY k NULLS LAST, id DESC
