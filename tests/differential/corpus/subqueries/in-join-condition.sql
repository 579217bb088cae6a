-- a subquery in a join condition
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND y.v > (SELECT avg(v) FROM y)
