-- a correlated subquery in HAVING
SELECT k, count(*) AS n FROM x GROUP BY k HAVING count(*) >= (SELECT count(*) FROM y WHERE y.k = x.k)
