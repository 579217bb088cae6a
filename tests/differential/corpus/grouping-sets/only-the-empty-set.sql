-- the empty set alone over no rows
SELECT count(*) AS n, sum(v) AS s FROM none GROUP BY GROUPING SETS (())
