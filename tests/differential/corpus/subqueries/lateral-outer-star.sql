-- a qualified star of a relation before LATERAL, and of a struct of it
SELECT l.* FROM tree, LATERAL (SELECT tree.k, st.*) AS l
