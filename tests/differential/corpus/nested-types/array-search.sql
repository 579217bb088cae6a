-- contains, position and overlap of arrays
SELECT id, array_contains(ai, 1) AS a, array_position(sa, 'a') AS b, arrays_overlap(ai, bi) AS c FROM n
