-- a scalar subquery without correlation in the select list
SELECT id, v - (SELECT avg(v) FROM y) AS apart FROM x
