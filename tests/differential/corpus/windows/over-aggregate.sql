-- a window over an aggregate
SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v) DESC, k) AS r, sum(sum(v)) OVER (ORDER BY k) AS running FROM x GROUP BY k
