-- a left join
SELECT x.id, y.id, y.s FROM x LEFT JOIN y ON x.k = y.k
