-- case-insensitive comparison by lower
SELECT a.id, b.id FROM orders a JOIN orders b ON lower(a.coupon) = lower(b.coupon) AND a.id < b.id AND b.id < 40
