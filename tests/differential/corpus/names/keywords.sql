-- keywords as names of columns, relations, windows and CTEs
WITH union AS (SELECT id AS from, k AS select, v AS when FROM l)
SELECT case.select, max(from) AS group, sum(CASE WHEN when > 0 THEN when ELSE from END) AS having
FROM union AS case WHERE from > 0 AND NOT select IS NULL GROUP BY case.select
