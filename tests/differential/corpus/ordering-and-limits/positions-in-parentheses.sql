-- positions in parentheses
SELECT k, id FROM l ORDER BY (1) DESC, ((2))
