-- QUALIFY after GROUP BY and HAVING
SELECT ks, k, sum(v) AS total FROM x GROUP BY ks, k HAVING count(*) > 1 QUALIFY rank() OVER (PARTITION BY ks ORDER BY total, k) = 1
