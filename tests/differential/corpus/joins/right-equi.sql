-- a right join
SELECT x.id, y.id, x.w FROM x RIGHT JOIN y ON x.kl = y.kl
