-- CASE guards a division
SELECT id, CASE WHEN k <> 0 THEN n / k ELSE 0 END AS a, n / nullif(k, 0) AS b, if(k = 0, NULL, n % k) AS c FROM e
