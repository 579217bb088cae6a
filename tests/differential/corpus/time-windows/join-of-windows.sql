-- windows of two tables are joined
SELECT a.window.start, a.n, b.n AS m
FROM (SELECT window, count(*) AS n FROM orders GROUP BY window(placed, '7 days')) AS a
JOIN (SELECT window, count(*) AS n FROM events GROUP BY window(moment, '7 days')) AS b ON a.window = b.window
