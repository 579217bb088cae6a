-- grouping by truncated dates
SELECT date_trunc('MONTH', placed) AS month, count(*) AS n, sum(total) AS s FROM orders GROUP BY date_trunc('MONTH', placed)
