-- a sequence against its step is an error
SELECT sequence(DATE '2024-03-31', signed_up, INTERVAL 1 MONTH) FROM customers
