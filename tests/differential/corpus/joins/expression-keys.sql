-- join keys that are expressions
SELECT x.id, y.id FROM x JOIN y ON x.k + 1 = y.k * 2
