-- revenue with a discount of doubles
-- rounded: 2
SELECT p.category, count(*) AS n, sum(l.quantity * l.price * (1 - coalesce(l.discount, 0))) AS net
FROM lines l LEFT JOIN products p ON l.product = p.id GROUP BY p.category
