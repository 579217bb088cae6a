-- a scalar subquery in HAVING
SELECT k, sum(v) AS s FROM x GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM y)
