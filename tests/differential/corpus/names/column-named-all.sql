-- GROUP BY all, where a column has that name
SELECT max(id), count(*) FROM (SELECT id, k AS all FROM l) GROUP BY all
