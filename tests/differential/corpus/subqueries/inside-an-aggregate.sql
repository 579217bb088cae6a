-- an aggregate of a correlated subquery
SELECT kb, sum((SELECT count(*) FROM y WHERE y.k = x.k)) AS n FROM x GROUP BY kb
