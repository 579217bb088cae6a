-- a shared exchange of wide rows on both sides of a join (seed 657 of the grammar)
WITH q0 AS (SELECT DISTINCT t1.kc AS c0, least(CAST(round(t1.kc, 1) AS DECIMAL(12,2)), CAST((t1.w +
0.50) % 100 AS DECIMAL(10,2))) AS c1, CAST(round(CASE WHEN (t1.kl IN (1L, CAST(2 AS BIGINT))) THEN
t1.kc ELSE 1.25 END, 1) AS DECIMAL(12,2)) AS c2 FROM y t1 LEFT ANTI JOIN x t2 ON t1.ks = t2.ks AND
t1.k = t2.k AND ((t1.ks IS NOT NULL)) WHERE ((nullif(t1.kl, CAST(2 AS BIGINT)) = (SELECT count(*)
FROM x t3 CROSS JOIN y t4 WHERE t3.s = t1.s)) AND (datediff(t1.kt, DATE'2000-01-01') <=> (SELECT
min(year(t5.kt)) FROM y t5 FULL JOIN x t6 ON t5.ks = t6.ks WHERE t6.v = t1.v AND ((CASE WHEN ((t6.k
BETWEEN 1 AND t5.id)) THEN t5.kt ELSE DATE'2024-02-29' END IS NULL)))))), q1 AS (SELECT DISTINCT
t7.kt AS c0, (NOT t7.kb) AS c1, DATE'2024-02-29' AS c2 FROM y t7 LATERAL VIEW OUTER explode(array(-2,
t7.v)) t8 AS e WHERE (t7.kl NOT IN (CAST(2 AS BIGINT), t7.kl))) SELECT max(coalesce(DATE'2024-02-29',
DATE'2024-02-29')) OVER (PARTITION BY 'b', CAST(2 AS BIGINT) ) AS c0, min(CAST(round(CAST(-3 AS
DECIMAL(10,2)), 1) AS DECIMAL(12,2))) OVER ( ORDER BY DATE'2024-02-29' RANGE BETWEEN UNBOUNDED
PRECEDING AND CURRENT ROW) AS c1 FROM (SELECT t11.kb AS c0, t10.id AS c1 FROM y t10 FULL JOIN y t11
ON t10.s <=> t11.s LEFT SEMI JOIN (SELECT DISTINCT ((t13.kl % 11) % 11) AS c0, coalesce(CAST((t13.kc
+ 0.50) % 100 AS DECIMAL(10,2)), 1.25) AS c1, nullif(t13.kb, false) AS c2, CAST((CAST(round(t13.w, 1)
AS DECIMAL(12,2)) + 0.50) % 100 AS DECIMAL(10,2)) AS c3 FROM y t13 LATERAL VIEW OUTER
explode(array(3, 3)) t14 AS e) t12 ON t11.w = t12.c3 AND (t11.v NOT IN (0, 3)) WHERE
(coalesce(t10.kt, DATE'2024-02-29') NOT IN (SELECT t15.kt FROM y t15 LEFT ANTI JOIN q0 t16 ON t15.w
<=> t16.c1 WHERE t15.kt <> t11.kt AND ((trunc(t15.kt, 'MONTH') <=> DATE'1970-01-01') OR (t15.v NOT IN
(-2, t15.v))))) GROUP BY t11.kb, t10.id HAVING min(CASE WHEN (t10.s = t10.ks) THEN t10.kl ELSE t10.kl
END) FILTER (WHERE ((t10.w BETWEEN CAST(-3 AS DECIMAL(10,2)) AND t10.w))) > 1) t9 LEFT ANTI JOIN q0
t17 ON t17.c0 = CAST(-3 AS DECIMAL(10,2))
