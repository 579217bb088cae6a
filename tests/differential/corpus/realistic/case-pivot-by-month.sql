-- a report with one column for each quarter
SELECT coalesce(c.country, '?') AS country,
  sum(CASE WHEN quarter(o.placed) = 1 THEN o.total END) AS q1, sum(CASE WHEN quarter(o.placed) = 2 THEN o.total END) AS q2,
  sum(CASE WHEN quarter(o.placed) = 3 THEN o.total END) AS q3, sum(CASE WHEN quarter(o.placed) = 4 THEN o.total END) AS q4,
  count(DISTINCT o.customer) AS customers
FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY coalesce(c.country, '?')
