-- QUALIFY by an alias with WHERE
SELECT id, dense_rank() OVER (PARTITION BY kb ORDER BY k) AS r FROM x WHERE v > -4 QUALIFY r <= 2
