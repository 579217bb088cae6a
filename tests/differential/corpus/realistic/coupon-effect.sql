-- orders with and without a coupon side by side
SELECT coalesce(nullif(lower(coupon), ''), 'none') AS coupon, count(*) AS n, avg(total) AS mean, count(DISTINCT customer) AS customers, bool_or(status = 'returned') AS any_returned
FROM orders GROUP BY 1
