-- sort_array and array_sort with NULLs and NaN
SELECT id, sort_array(ad) AS a, sort_array(ai, false) AS b, array_sort(sa) AS c FROM n
