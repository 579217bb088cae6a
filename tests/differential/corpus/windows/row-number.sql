-- row_number by partition
SELECT id, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM x
