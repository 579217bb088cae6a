-- orders above the average of their customer
SELECT o.id, o.customer, o.total FROM orders o WHERE o.total > (SELECT avg(p.total) FROM orders p WHERE p.customer = o.customer)
