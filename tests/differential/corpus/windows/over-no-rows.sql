-- windows over no rows
SELECT id, row_number() OVER (ORDER BY id) AS r, sum(v) OVER (PARTITION BY k) AS s FROM z
