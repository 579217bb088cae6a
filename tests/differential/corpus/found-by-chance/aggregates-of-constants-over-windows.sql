-- aggregates of constants over a derived table with windows (seed 345 of the grammar)
SELECT sum(datediff(DATE'1970-01-01', DATE'2000-01-01')) AS c0 FROM (SELECT (t2.kl NOT IN (CAST(2 AS
BIGINT), t2.kl)) AS c0, ((t2.kc BETWEEN 1.25 AND t3.c2)) AS c1, (SELECT count(DISTINCT t8.kb) FROM z
t8 WHERE (((t8.s IS NOT NULL)) OR ((t8.id BETWEEN 1 AND -2)))) AS c2 FROM x t2 LEFT JOIN (SELECT
DISTINCT CASE WHEN ((t4.kl BETWEEN CAST(2 AS BIGINT) AND 1L)) THEN nullif(t4.w, CAST(-3 AS
DECIMAL(10,2))) ELSE t4.w END AS c0, length(t4.s) AS c1, t4.kc AS c2, ((t4.kl % 11) % 11) AS c3 FROM
y t4 LEFT ANTI JOIN y t5 ON t4.ks = t5.ks) t3 ON t2.w = t3.c0 WHERE ((CASE WHEN (t2.kt NOT IN
(DATE'2024-02-29', DATE'1970-01-01')) THEN t3.c1 ELSE t3.c1 END < 0) OR (CAST(round(t2.kc, 1) AS
DECIMAL(12,2)) <> (SELECT min(coalesce(t7.kc, 0.50)) FILTER (WHERE (t6.kc <> 1.25)) FROM z t6 LEFT
JOIN z t7 ON t6.ks = t7.ks AND t6.kc = t7.kc WHERE t7.kl <=> t3.c3)))) t1 HAVING count(DISTINCT 'b')
< 1
