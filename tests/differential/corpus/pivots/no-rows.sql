-- PIVOT over no rows
SELECT * FROM (SELECT a, b, v FROM none) PIVOT (sum(v) FOR a IN (1, 2))
