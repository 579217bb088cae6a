-- pairs of products in one order
SELECT least(a.product, b.product) AS one, greatest(a.product, b.product) AS other, count(DISTINCT a.order_id) AS orders
FROM lines a JOIN lines b ON a.order_id = b.order_id AND a.product < b.product
GROUP BY 1, 2 HAVING count(DISTINCT a.order_id) > 1 ORDER BY orders DESC, one, other
