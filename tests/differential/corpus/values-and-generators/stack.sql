-- stack
SELECT id, stack(2, id, 'id', k, 'k') AS (v, name) FROM tree
