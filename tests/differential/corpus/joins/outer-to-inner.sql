-- a left join whose WHERE rejects NULL is an inner join
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k WHERE y.v > 0
