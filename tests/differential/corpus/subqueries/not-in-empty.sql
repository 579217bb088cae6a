-- NOT IN an empty set is true, for NULL too
SELECT id, k FROM x WHERE k NOT IN (SELECT k FROM z)
