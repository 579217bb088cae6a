-- the share of each group in the sum of its class, in decimals
SELECT g, h, sum(d52) * 100 / sum(sum(d52)) OVER (PARTITION BY h) AS a, CAST(sum(d52) AS DECIMAL(15,4)) / CAST(max(abs(d52)) + 1 AS DECIMAL(15,4)) * 100 AS b FROM g GROUP BY g, h HAVING sum(d52) * 0.3333333333 * 0.3333333333 < 100000
