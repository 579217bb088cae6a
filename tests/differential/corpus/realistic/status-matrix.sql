-- a matrix of status by tier with totals
SELECT CASE WHEN grouping(c.tier) = 1 THEN 'total' ELSE coalesce(c.tier, 'none') END AS tier,
  count_if(o.status = 'paid') AS paid, count_if(o.status = 'open') AS open, count_if(o.status IS NULL) AS unknown, count(*) AS n
FROM orders o JOIN customers c ON o.customer = c.id GROUP BY ROLLUP (c.tier)
