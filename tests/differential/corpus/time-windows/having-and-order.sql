-- the window in HAVING, ORDER BY and OVER
SELECT count(*) AS n, sum(count(*)) OVER (ORDER BY window.start) AS running FROM orders
GROUP BY window(placed, '7 days') HAVING window.start > '2023-01-01' ORDER BY window.start
