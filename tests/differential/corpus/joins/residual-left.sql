-- a left join with equality and another condition
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND x.v < y.v
