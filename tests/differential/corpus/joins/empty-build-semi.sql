-- semi and anti joins with an empty side
SELECT id FROM x LEFT ANTI JOIN z ON x.k = z.k UNION ALL SELECT id FROM x LEFT SEMI JOIN z ON x.k = z.k
