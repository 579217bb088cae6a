-- lengths in characters, bytes and bits
SELECT id, length(s) AS a, octet_length(s) AS b, bit_length(s) AS c, char_length(t) AS d FROM e
