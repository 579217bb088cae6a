-- distinct and plain counts of constants over distributed rows (seed 309 of the grammar)
SELECT max(coalesce(-2, 1)) AS c0, count(DISTINCT 1L) AS c1, count(*) AS c2 FROM (SELECT DISTINCT
t3.kb AS c0, nullif((SELECT bool_and((t4.kb <=> t4.kb)) FROM x t4 WHERE t4.kl = t3.kl AND ((CASE WHEN
t4.ks LIKE '%a%' THEN t4.ks END NOT IN ('a', t4.ks)) AND ((t4.kl BETWEEN 1L AND 1L)))), true) AS c1
FROM z t2 JOIN x t3 ON t2.k = t3.k AND t2.s <=> t3.s) t1 WHERE NOT (((CASE WHEN (DATE'2024-02-29' IN
(DATE'1970-01-01', DATE'2024-02-29')) THEN 0.50 ELSE 0.50 END BETWEEN 0.50 AND 0.50)))
