-- first_value and last_value of the default frame
SELECT id, first_value(v) OVER (PARTITION BY kb ORDER BY id) AS a, last_value(v) OVER (PARTITION BY kb ORDER BY id) AS b FROM x
