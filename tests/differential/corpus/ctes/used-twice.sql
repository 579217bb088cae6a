-- a CTE used twice is computed once
WITH q AS (SELECT k, count(*) AS n, sum(v) AS s FROM x GROUP BY k) SELECT a.k, b.k, a.n FROM q a JOIN q b ON a.n = b.n AND a.k < b.k
