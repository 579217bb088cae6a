-- statistics of a single row
SELECT id, stddev_samp(id) AS a, var_pop(id) AS b, corr(id, id) AS c FROM g WHERE id < 3 GROUP BY id
