-- a join of two grouped sides on their group keys
SELECT a.k, a.n, b.s FROM (SELECT k, count(*) AS n FROM x GROUP BY k) a FULL JOIN (SELECT k, sum(v) AS s FROM y GROUP BY k) b ON a.k = b.k
