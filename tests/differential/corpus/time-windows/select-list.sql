-- a window without GROUP BY is a column, which * does not show
SELECT *, window(placed, '1 day').start AS day FROM orders WHERE total > 10
