-- first and last value without NULLs: filling gaps
SELECT id, last_value(v) IGNORE NULLS OVER (ORDER BY id) AS filled, first(v, true) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next FROM x
