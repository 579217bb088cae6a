-- a window of months is an error
-- on: spark
SELECT window(placed, '1 month') FROM orders
