-- the time of a window, and windows of windows
SELECT window_time(w) AS t, n FROM (SELECT window(placed, '7 days') AS w, count(*) AS n FROM orders GROUP BY 1)
UNION ALL
SELECT window(window, '30 days').end, sum(n)
FROM (SELECT window, count(*) AS n FROM orders GROUP BY window(placed, '7 days'))
GROUP BY window(window, '30 days')
