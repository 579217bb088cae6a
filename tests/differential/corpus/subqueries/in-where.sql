-- IN with NULLs on both sides as a condition
SELECT id, k FROM x WHERE k IN (SELECT k FROM y WHERE v > 2)
