-- a slide that is longer than the window is an error
SELECT count(*) FROM orders GROUP BY window(placed, '1 hour', '2 hours')
