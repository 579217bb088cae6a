-- array_min and array_max of doubles and arrays
SELECT id, array_min(ad) AS a, array_max(ai) AS b, array_max(aa) AS c FROM n
