-- a CTE with a list of column names
WITH q(key, total) AS (SELECT k, sum(v) FROM x GROUP BY k) SELECT total, key FROM q
