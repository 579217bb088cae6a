-- cohorts by month of the first order, and who came back
WITH firsts AS (SELECT customer, min(placed) AS first FROM orders WHERE customer IS NOT NULL GROUP BY customer),
activity AS (
  SELECT DISTINCT f.customer, date_trunc('MONTH', f.first) AS cohort,
    (year(o.placed) - year(f.first)) * 12 + month(o.placed) - month(f.first) AS months_later
  FROM firsts f JOIN orders o ON o.customer = f.customer
)
SELECT date_format(cohort, 'yyyy-MM') AS cohort, count(DISTINCT customer) AS size,
  count_if(months_later = 1) AS m1, count_if(months_later = 2) AS m2, count_if(months_later BETWEEN 3 AND 6) AS m3_6
FROM activity GROUP BY cohort ORDER BY 1
