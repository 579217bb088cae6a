-- WHERE of IS NULL after a left join is an anti join
SELECT x.id FROM x LEFT JOIN y ON x.k = y.k WHERE y.id IS NULL
