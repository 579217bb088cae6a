-- levenshtein
SELECT id, levenshtein(name, category) AS a, levenshtein(name, 'Red lamp 1') AS b FROM products
