-- EXCEPT ALL subtracts the numbers of duplicates
SELECT b FROM t EXCEPT ALL SELECT b FROM u
