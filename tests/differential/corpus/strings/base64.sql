-- base64, encode and decode
SELECT id, base64(bin) AS a, unbase64(base64(bin)) AS b, decode(encode(s, 'UTF-8'), 'UTF-8') AS c FROM e
