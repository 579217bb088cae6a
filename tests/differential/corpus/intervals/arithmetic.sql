-- intervals multiplied and divided
SELECT id, (dt - du) * 2 AS a, (ts - tu) / 4 AS b, -(dt - du) AS c FROM e
