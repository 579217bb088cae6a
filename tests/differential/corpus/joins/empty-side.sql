-- joins with an empty side
SELECT x.id, z.id FROM x FULL JOIN z ON x.k = z.k
