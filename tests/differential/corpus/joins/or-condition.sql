-- a full join on two equalities joined by OR
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k OR x.id = y.id - 200
