-- a histogram of order totals with empty buckets
SELECT b.id * 100 AS from_total, count(o.id) AS n
FROM range(0, 6) b LEFT JOIN orders o ON o.total >= b.id * 100 AND o.total < (b.id + 1) * 100 GROUP BY b.id ORDER BY b.id
