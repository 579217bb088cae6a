-- a right join on an inequality alone
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k < y.k - 6
