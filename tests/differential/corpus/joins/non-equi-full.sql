-- a full join on an inequality alone
SELECT x.id, y.id FROM x FULL JOIN y ON x.k > y.k + 6
