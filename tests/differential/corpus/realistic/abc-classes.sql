-- customers in classes A, B and C by their part of the revenue
WITH spent AS (SELECT customer, sum(total) AS amount FROM orders WHERE customer IS NOT NULL AND total IS NOT NULL GROUP BY customer),
shares AS (SELECT customer, amount, sum(amount) OVER (ORDER BY amount DESC, customer ROWS UNBOUNDED PRECEDING) / sum(amount) OVER () AS part FROM spent)
SELECT CASE WHEN part <= 0.5 THEN 'A' WHEN part <= 0.8 THEN 'B' ELSE 'C' END AS class, count(*) AS customers, sum(amount) AS amount FROM shares GROUP BY 1
