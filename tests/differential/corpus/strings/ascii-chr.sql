-- ascii, chr and hex
SELECT id, ascii(s) AS a, chr(k + 60) AS b, hex(s) AS c, hex(l) AS d FROM e
