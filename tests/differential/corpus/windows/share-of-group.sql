-- the share of a group in its parent
SELECT kb, k, sum(w) AS s, round(100 * sum(w) / sum(sum(w)) OVER (PARTITION BY kb), 2) AS share FROM x WHERE w > 0 GROUP BY kb, k
