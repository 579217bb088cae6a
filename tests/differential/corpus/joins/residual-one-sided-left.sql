-- a left join whose condition on the left does not filter it
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND x.v > 2 AND y.kb
