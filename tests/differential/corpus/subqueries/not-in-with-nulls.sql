-- NOT IN a set with a NULL is never true
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y)
