-- bit_and, bit_or, bit_xor
SELECT h, bit_and(i) AS a, bit_or(si) AS b, bit_xor(l) AS c FROM g GROUP BY h
