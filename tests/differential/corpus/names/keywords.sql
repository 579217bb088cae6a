-- keywords as names of columns, relations and CTEs
WITH union AS (SELECT id AS from, a AS select, v AS when FROM t)
SELECT case.select, max(from) AS group, sum(CASE WHEN when > 0 THEN when ELSE from END) AS having
FROM union AS case WHERE from > 0 AND NOT select IS NULL GROUP BY case.select
