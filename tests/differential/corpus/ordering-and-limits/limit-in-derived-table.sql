-- an ordered limit in a derived table, joined
SELECT q.id, y.id FROM (SELECT id, k FROM x ORDER BY id DESC LIMIT 6) q JOIN y ON q.k = y.k
