-- levenshtein and soundex
SELECT id, levenshtein(s, t) AS a, soundex(s) AS b FROM e
