-- a CTE hides a table of its name
WITH y AS (SELECT id, k FROM x WHERE v = 1) SELECT * FROM y
