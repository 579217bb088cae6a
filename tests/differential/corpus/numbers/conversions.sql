-- bin, hex, conv and unhex
SELECT id, bin(l) AS a, conv(k, 10, 2) AS b, unhex(hex(i)) AS c FROM e
