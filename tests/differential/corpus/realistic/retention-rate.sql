-- the share of each cohort that is active in a later quarter
WITH joined AS (
  SELECT c.id, trunc(c.signed_up, 'QUARTER') AS cohort, count(o.id) AS orders,
    count_if(CAST(o.placed AS DATE) >= add_months(c.signed_up, 6)) AS later
  FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id, c.signed_up
)
SELECT cohort, count(*) AS customers, count_if(orders > 0) AS active, round(avg(CASE WHEN later > 0 THEN 1.0 ELSE 0.0 END), 3) AS kept
FROM joined GROUP BY cohort
