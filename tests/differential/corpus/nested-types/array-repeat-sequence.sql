-- array_repeat and sequence
SELECT id, array_repeat(s, k) AS a, sequence(k, 0, -1) AS b FROM n WHERE k IS NOT NULL
