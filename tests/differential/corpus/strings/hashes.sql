-- md5, sha and crc32
SELECT id, md5(s) AS a, sha2(s, 256) AS b, crc32(s) AS c FROM e
