-- tumbling windows of instants; rows without a time are in none
SELECT window, count(*) AS n, sum(total) AS total FROM orders GROUP BY window(placed, '7 days')
