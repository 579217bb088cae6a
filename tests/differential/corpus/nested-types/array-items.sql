-- items of arrays by index: get gives NULL outside
SELECT id, get(ai, 0) AS a, get(ai, 5) AS b, try_element_at(ai, -1) AS c, array_size(ai) AS n FROM n
