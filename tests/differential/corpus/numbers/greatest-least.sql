-- greatest and least with NULLs and unlike types
SELECT id, greatest(i, l, 5) AS a, least(d52, d104) AS b, greatest(d, d2) AS c FROM e
