-- an ordered limit above a union of two tables
SELECT id, v FROM (SELECT id, v FROM x UNION ALL SELECT id, v FROM y) ORDER BY v DESC NULLS LAST, id LIMIT 6
