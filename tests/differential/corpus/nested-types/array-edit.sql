-- append, insert, remove and compact
SELECT id, array_append(ai, k) AS a, array_insert(sa, 1, 'new') AS b, array_remove(ai, 1) AS c, array_compact(ai) AS d FROM n
