-- bit operators are looser than || and sums
SELECT id, id & 1 || 2 AS a, id | 1 ^ 3 & id + 1 AS b, id << 1 + 1 >> 1 AS c, id >>> 1 | 2 << 1 AS d FROM g WHERE id | 1 = 3 OR id & 1 = 0
