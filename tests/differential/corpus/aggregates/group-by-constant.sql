-- grouping by a constant over no rows gives no rows
SELECT count(*) AS n FROM z GROUP BY 'all'
