-- bit operations and shifts
SELECT id, i & j AS a, i | j AS b, i ^ j AS c, ~i AS d, shiftleft(k, 3) AS f, bit_count(l) AS g FROM e
