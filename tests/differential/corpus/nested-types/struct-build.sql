-- building structs and reading them
SELECT named_struct('a', k, 'b', s) AS st, struct(id, k).k AS k2 FROM n WHERE id < 20
