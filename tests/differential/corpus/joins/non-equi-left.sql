-- a left join on an inequality alone
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k > y.k + 6
