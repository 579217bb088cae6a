-- a column that a nested query selects twice is one column
SELECT k, q.k + 1 AS a FROM (SELECT k, id, k FROM e) q WHERE k > 1 ORDER BY k, id
