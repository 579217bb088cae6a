-- grouping by decimals and dates
SELECT gc, gt, count(*) AS n, max(id) AS m FROM g GROUP BY gc, gt
