-- sliding windows: a row lies in several
SELECT window.start, window.end, status, count(*) AS n
FROM orders GROUP BY status, window(placed, '6 days', '3 days', '5 hours')
