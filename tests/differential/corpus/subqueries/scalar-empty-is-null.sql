-- a scalar subquery over no rows is NULL
SELECT id, (SELECT v FROM z) AS nothing, coalesce((SELECT max(v) FROM z), -1) AS least FROM x
