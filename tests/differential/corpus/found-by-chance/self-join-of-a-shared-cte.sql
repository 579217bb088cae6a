-- both sides of a join read one shared exchange (seed 396 of the grammar)
SELECT DISTINCT t1.kb AS c0, t2.kc AS c1, add_months(t2.kt, 1) AS c2 FROM z t1 FULL JOIN z t2 ON
t1.kc = t2.kc LEFT SEMI JOIN (SELECT CAST(-2 AS DECIMAL(12,2)) AS c0, t4.c2 AS c1 FROM (SELECT
DISTINCT t6.kb AS c0, coalesce(CAST(t6.id AS DECIMAL(12,2)), CAST(-3 AS DECIMAL(10,2))) AS c1,
add_months(coalesce(t6.kt, DATE'1970-01-01'), 1) AS c2 FROM z t5 LEFT JOIN z t6 ON t5.kl = t6.kl AND
(t6.kl IN (1L, CAST(2 AS BIGINT))) WHERE (coalesce(t6.ks, '') IN ('a', 'ß', '', 'b'))) t4) t3 ON
t2.kt = t3.c1 WHERE ((EXISTS (SELECT 1 FROM y t7 WHERE t7.ks <> t2.ks AND ((datediff(t7.kt,
DATE'2000-01-01') NOT IN (0, t7.id)) OR ((t7.kt BETWEEN DATE'2024-02-29' AND DATE'1970-01-01'))))) OR
(CASE WHEN (t1.kt IN (DATE'1970-01-01', DATE'2024-02-29')) THEN t2.k ELSE t1.k END IN (0, 1, 3, -2)))
