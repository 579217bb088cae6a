-- LIKE is looser than a comparison
SELECT id, h = h LIKE 'tr%' AS a, h <> h NOT LIKE 'fa%' AS b, h = h RLIKE 'a' AS c, 'true' LIKE h = h AS d FROM g
