-- ON true, ON false and a constant
SELECT x.id, q.id AS qid, z.id AS zid FROM x LEFT JOIN z ON true LEFT JOIN (SELECT id FROM y WHERE id < 303) q ON 1 = 2
