-- a full join whose sides are one exchange, used twice in the query (seed 571 of the grammar)
SELECT min(nullif(t4.v, 3)) OVER (PARTITION BY t4.kb, t4.v ORDER BY t4.k DESC, t4.kt DESC RANGE
BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c0, max(nullif(t1.c0, DATE'1970-01-01')) OVER
(PARTITION BY t4.kt ) AS c1, max(t4.ks) OVER ( ORDER BY t1.c0, t4.s NULLS LAST RANGE BETWEEN CURRENT
ROW AND UNBOUNDED FOLLOWING) AS c2 FROM (SELECT DISTINCT add_months(nullif(t3.kt, DATE'1970-01-01'),
1) AS c0, t2.kl AS c1 FROM x t2 RIGHT JOIN y t3 ON t2.kc = t3.kc WHERE NOT ((t3.kl <=> 1L))) t1 JOIN
z t4 ON t1.c0 = t4.kt AND t1.c1 = t4.kl UNION ALL SELECT t5.k AS c0, t5.kt AS c1, trim(coalesce(t5.s,
'a')) AS c2 FROM z t5 LEFT ANTI JOIN z t6 ON t5.k <=> t6.k WHERE (t5.kt NOT IN (SELECT t7.kt FROM y
t7 FULL JOIN y t8 ON t7.ks <=> t8.ks WHERE t7.kt <> t5.kt))
