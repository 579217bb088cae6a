-- FILTER on a window aggregate
SELECT id, count(*) FILTER (WHERE v > 0) OVER (PARTITION BY k) AS n, sum(v) FILTER (WHERE kb) OVER (ORDER BY id) AS s FROM x
