-- two windows in one SELECT are an error
SELECT window(placed, '7 days'), window(placed, '1 day') FROM orders
