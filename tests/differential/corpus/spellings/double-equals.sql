-- the operator == is equality
SELECT id FROM x WHERE k == 3 OR ks == 'a'
