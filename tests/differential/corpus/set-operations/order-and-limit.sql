-- ORDER BY and LIMIT of the whole union
SELECT id, b FROM t UNION ALL SELECT id, b FROM u ORDER BY id DESC, b LIMIT 5
