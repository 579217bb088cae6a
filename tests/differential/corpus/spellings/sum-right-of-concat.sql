-- || and + are bound from the left
SELECT id, '1' || id + 1 AS a, 2 || id * 2 - 1 AS b, '3' || id - 1 || 4 AS c FROM g
