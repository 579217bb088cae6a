-- explode of a split string
SELECT id, trim(word) AS word FROM t LATERAL VIEW explode(split(concat(b, ', ', id), ',')) w AS word
