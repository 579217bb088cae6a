-- joins in parentheses on the right
SELECT a.id, b.id, c.id FROM x a LEFT JOIN (y b JOIN u c ON b.k = c.id) ON a.k = b.k
