-- a CTE inside a correlated subquery
SELECT id, (WITH q AS (SELECT v FROM y WHERE y.k = x.k) SELECT count(*) FROM q WHERE v > 0) AS n FROM x
