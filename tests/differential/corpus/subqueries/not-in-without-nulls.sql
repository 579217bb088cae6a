-- NOT IN as a null-aware anti join: a NULL on the left is no row
SELECT id, k FROM x WHERE k NOT IN (SELECT v FROM y WHERE v > 3)
