-- windows within CASE and arithmetic
SELECT id, CASE WHEN v > avg(v) OVER (PARTITION BY k) THEN 'above' WHEN lag(v) OVER (ORDER BY id) IS NULL THEN 'start' ELSE 'below' END AS c FROM x
