-- GROUP BY all, where a column has that name
SELECT max(id), count(*) FROM (SELECT id, a AS all FROM t) GROUP BY all
