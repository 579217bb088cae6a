-- positions in parentheses
SELECT a, id FROM t ORDER BY (1) DESC, ((2))
