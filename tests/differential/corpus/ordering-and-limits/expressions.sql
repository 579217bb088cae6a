-- ORDER BY expressions that are not selected
SELECT id FROM x ORDER BY v % 3 NULLS LAST, abs(w) DESC, id
