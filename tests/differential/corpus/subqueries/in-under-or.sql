-- IN below OR
SELECT id FROM x WHERE v < -3 OR k IN (SELECT k FROM y WHERE kb)
