-- TRY_CAST of clear texts to dates
SELECT id, TRY_CAST(CAST(dt AS STRING) AS DATE) AS a, TRY_CAST(page AS DATE) AS b FROM (SELECT id, hired AS dt, department AS page FROM employees)
