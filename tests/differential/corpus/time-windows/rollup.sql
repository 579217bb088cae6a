-- a window in ROLLUP
SELECT status, window, count(*) AS n FROM orders GROUP BY ROLLUP(status, window(placed, '30 days'))
