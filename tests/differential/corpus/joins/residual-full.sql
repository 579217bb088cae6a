-- a full join with equality and an inequality
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND x.v < y.v
