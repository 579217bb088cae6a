-- a left join after a right join
SELECT a.id, b.id, c.id FROM x a RIGHT JOIN y b ON a.k = b.k LEFT JOIN t c ON c.id = a.k
