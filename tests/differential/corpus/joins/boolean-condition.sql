-- a column of booleans as the condition
SELECT x.id, y.id FROM x JOIN y ON x.kb AND NOT y.kb AND x.k = y.k
