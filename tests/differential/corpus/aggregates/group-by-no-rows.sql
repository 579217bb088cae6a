-- grouping no rows gives no rows
SELECT k, count(*) AS n FROM z GROUP BY k
