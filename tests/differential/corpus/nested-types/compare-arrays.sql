-- comparisons of arrays and structs
SELECT id, ai = bi AS a, ad < bd AS b, st <=> su AS c, aa >= ba AS d FROM n
