-- growth against the month before by lag
SELECT month, amount, amount - lag(amount) OVER (ORDER BY month) AS more, round(amount / lag(amount) OVER (ORDER BY month), 4) AS ratio
FROM (SELECT date_trunc('MONTH', placed) AS month, sum(total) AS amount FROM orders WHERE status IN ('paid', 'open') GROUP BY 1)
