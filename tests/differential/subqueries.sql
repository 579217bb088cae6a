-- scalar, uncorrelated
SELECT id, (SELECT max(v) FROM y) + (SELECT min(v) FROM y) AS m FROM x
SELECT id, (SELECT v FROM y ORDER BY id LIMIT 1) AS m FROM x
SELECT id, (SELECT s FROM y WHERE id = 301) AS m, (SELECT s FROM z) AS n FROM x
SELECT id, (SELECT max(v) FROM y HAVING count(*) > 1000) AS m FROM x
SELECT id, (SELECT v FROM y LIMIT 0) AS m FROM x
SELECT id FROM x WHERE v > (SELECT v FROM y WHERE id < 303)
SELECT id FROM x ORDER BY (SELECT max(v) FROM y) - v, id
SELECT sum(v + (SELECT max(k) FROM y)) AS s FROM x
SELECT k, sum(v) AS s FROM x GROUP BY k HAVING sum(v) > (SELECT avg(v) FROM y) OR count(*) = (SELECT min(v) FROM y)
SELECT (SELECT max(v) FROM y) AS m, count(*) AS n FROM x GROUP BY (SELECT max(v) FROM y)
SELECT CASE WHEN v > 0 THEN (SELECT max(v) FROM y) ELSE (SELECT min(v) FROM y) END AS c FROM x
SELECT (SELECT (SELECT max(v) FROM y) + min(v) FROM x) AS a
-- scalar, correlated by equality
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT count(v) FROM y WHERE y.k = x.k) AS n, (SELECT sum(v) FROM y WHERE y.k = x.k) AS s FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k <=> x.k) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.kl = x.k) AS n FROM x
SELECT id, (SELECT max(y.v) FROM y WHERE y.k = x.k AND y.ks = x.ks) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.kd = x.kd) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.kc = x.kc) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k + 1 = x.k) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k + 1) AS n FROM x
SELECT id, (SELECT sum(y.v) FILTER (WHERE y.v > 0) FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT count(DISTINCT y.v) FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT avg(y.w) FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT count(*) FROM z WHERE z.k = x.k) AS n, (SELECT max(z.v) FROM z WHERE z.k = x.k) AS m FROM x
SELECT id FROM x WHERE (SELECT count(*) FROM y WHERE y.k = x.k) = 0 OR v = 3
SELECT id FROM x WHERE v > (SELECT avg(v) FROM y WHERE y.k = x.k) AND (SELECT count(*) FROM y WHERE y.ks = x.ks) > 1
SELECT id, (SELECT max(u.c) FROM (SELECT y.v + 1 AS c FROM y WHERE y.k = x.k) u) AS m FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k HAVING count(*) > 1) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k HAVING count(*) < 2) AS n FROM x
SELECT id, (SELECT max(y.id) FROM y JOIN z ON y.k = z.k WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT count(y2.id) FROM y LEFT JOIN y y2 ON y.kl = y2.kl AND y2.v > 0 WHERE y.k = x.k) AS n FROM x
-- scalar, correlated otherwise
SELECT id, (SELECT count(*) FROM y WHERE y.k < x.k) AS n FROM x
SELECT id, (SELECT max(y.v) FROM y WHERE y.v < x.v) AS n FROM x
SELECT id, (SELECT sum(y.v) FROM y WHERE y.k = x.k AND y.v > x.v) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k <> x.k) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k OR y.v = x.v) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.k IS NULL AND x.k IS NULL) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE x.v > 0) AS n FROM x
SELECT id, (SELECT count(*) FROM y WHERE y.v BETWEEN x.v - 1 AND x.v + 1) AS n FROM x
SELECT id FROM x WHERE v >= (SELECT max(y.v) FROM y WHERE y.k <= x.k)
-- scalar without an aggregate
SELECT id, (SELECT y.s FROM y WHERE y.id = x.id + 200) AS s FROM x
SELECT id, (SELECT max(y.v) FROM y WHERE y.k = x.k GROUP BY y.k) AS n FROM x
SELECT id, (SELECT DISTINCT y.k FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT y.v FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT y.v FROM y WHERE y.k = x.k ORDER BY y.v DESC, y.id LIMIT 1) AS n FROM x
SELECT id, (SELECT y.v FROM y WHERE y.k = x.k ORDER BY y.v NULLS LAST, y.id LIMIT 1 OFFSET 1) AS n FROM x
SELECT id, (SELECT y.id FROM y WHERE y.v < x.v ORDER BY y.v DESC, y.id LIMIT 1) AS n FROM x
SELECT id, (SELECT x.v) AS n FROM x
SELECT id, (SELECT x.v + 1 WHERE x.v > 0) AS n FROM x
SELECT id, (SELECT max(u.v) FROM (SELECT v FROM y WHERE y.k = x.k ORDER BY v, id LIMIT 2) u) AS n FROM x
SELECT id, (SELECT count(*) FROM (SELECT DISTINCT v, ks FROM y WHERE y.k = x.k) u) AS n FROM x
SELECT id, (SELECT count(*) FROM (SELECT ks, count(*) AS c FROM y WHERE y.k = x.k GROUP BY ks) u WHERE u.c > 1) AS n FROM x
SELECT id, (SELECT max(u.c) FROM (SELECT count(*) AS c FROM y WHERE y.k = x.k) u) AS n FROM x
SELECT id, (SELECT sum(u.c) FROM (SELECT count(*) AS c FROM y WHERE y.k = x.k UNION ALL SELECT count(*) FROM x x2 WHERE x2.v = x.v) u) AS n FROM x
SELECT id, (SELECT max(u.v) FROM (SELECT v FROM y WHERE y.k = x.k UNION ALL SELECT v FROM x x2 WHERE x2.k = x.k) u) AS n FROM x
SELECT id, (SELECT count(*) FROM (SELECT v FROM y WHERE y.k = x.k UNION SELECT v FROM y WHERE y.ks = x.ks) u) AS n FROM x
-- EXISTS as a condition
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k)
SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE y.k = x.k)
SELECT id FROM x WHERE NOT EXISTS (SELECT * FROM y WHERE y.k <=> x.k)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k > x.k + 6)
SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE y.k > x.k)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND y.v > x.v AND y.ks <> x.ks)
SELECT id FROM x WHERE EXISTS (SELECT count(*) FROM y WHERE y.k = x.k)
SELECT id FROM x WHERE EXISTS (SELECT count(*) FROM y WHERE y.k = x.k HAVING count(*) = 0)
SELECT id FROM x WHERE NOT EXISTS (SELECT count(*) FROM y WHERE y.k = x.k HAVING count(*) > 2)
SELECT id FROM x WHERE EXISTS (SELECT y.ks FROM y WHERE y.k = x.k GROUP BY y.ks HAVING count(*) > 1)
SELECT id FROM x WHERE EXISTS (SELECT y.ks FROM y WHERE y.k + y.v = x.k GROUP BY y.ks HAVING count(*) > 1)
SELECT id FROM x WHERE EXISTS (SELECT y.ks FROM y WHERE y.k < x.k GROUP BY y.ks HAVING count(*) > 3)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k LIMIT 1)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k ORDER BY y.id LIMIT 5 OFFSET 3)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k LIMIT 0)
SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM z)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM z WHERE z.k = x.k) OR NOT EXISTS (SELECT 1 FROM z)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k UNION ALL SELECT 1 FROM y WHERE y.v = x.v)
SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE y.k = x.k UNION SELECT 2 FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y LEFT JOIN z ON y.k = z.k WHERE y.v = x.v AND z.id IS NULL)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y LEFT JOIN x x2 ON y.k = x2.k AND x2.v = x.v WHERE x2.id IS NULL AND y.ks = x.ks)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y RIGHT JOIN x x2 ON y.k = x2.k AND y.v = x.v WHERE y.id IS NULL AND x2.ks = x.ks)
SELECT id FROM x WHERE EXISTS (SELECT 1 WHERE x.v > 0)
SELECT id FROM x WHERE NOT EXISTS (SELECT x.v WHERE x.v IS NULL)
-- EXISTS as a value
SELECT id FROM x WHERE v > 3 OR EXISTS (SELECT 1 FROM y WHERE y.k = x.k)
SELECT id FROM x WHERE NOT (v > 3 OR EXISTS (SELECT 1 FROM y WHERE y.k = x.k))
SELECT id, EXISTS (SELECT 1 FROM y WHERE y.k = x.k) AS e FROM x
SELECT id, NOT EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND y.v >= x.v) AS e FROM x
SELECT id, EXISTS (SELECT 1 FROM y WHERE y.v > 4) AS e, EXISTS (SELECT 1 FROM z) AS f FROM x
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM y WHERE y.k = x.k) THEN 'y' WHEN EXISTS (SELECT 1 FROM y WHERE y.v = x.v) THEN 'v' ELSE '-' END AS c FROM x
SELECT id FROM x WHERE (EXISTS (SELECT 1 FROM y WHERE y.k = x.k)) = (EXISTS (SELECT 1 FROM y WHERE y.v = x.v))
SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM y WHERE y.k = x.k) THEN 1 ELSE 0 END) AS n FROM x
SELECT EXISTS (SELECT 1 FROM y WHERE y.k = x.k) AS e, count(*) AS n FROM x GROUP BY 1
SELECT id, EXISTS (SELECT 1 FROM y WHERE y.k = x.k OR y.v = x.v) AS e FROM x
SELECT id, EXISTS (SELECT count(*) FROM y WHERE y.k = x.k HAVING max(y.v) > 2) AS e FROM x
-- IN as a condition
SELECT id FROM x WHERE k IN (SELECT k FROM y)
SELECT id FROM x WHERE k + 1 IN (SELECT k FROM y WHERE y.v = x.v)
SELECT id FROM x WHERE k IN (SELECT y.k + x.v FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE k IN (SELECT max(k) FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE k IN (SELECT max(k) FROM y GROUP BY ks)
SELECT id FROM x WHERE k IN (SELECT count(*) FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE v IN (SELECT v FROM y WHERE y.k = x.k ORDER BY v DESC LIMIT 1)
SELECT id FROM x WHERE (k, ks) IN (SELECT k, ks FROM y)
SELECT id FROM x WHERE (k, v) IN (SELECT k, max(v) FROM y GROUP BY k)
SELECT id FROM x WHERE (k, v) IN (SELECT k, v FROM y WHERE y.ks <> x.ks)
SELECT id FROM x WHERE k IN (SELECT k FROM y UNION ALL SELECT v FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE k IN (SELECT k FROM z)
SELECT id FROM x WHERE 5 IN (SELECT k FROM y WHERE y.ks = x.ks)
-- NOT IN as a condition
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE k > 5)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM z)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE y.ks = x.ks AND k IS NOT NULL)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE y.v > x.v)
SELECT id FROM x WHERE k NOT IN (SELECT max(k) FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE y.ks = x.ks GROUP BY k HAVING count(*) > 1)
SELECT id FROM x WHERE (k, v) NOT IN (SELECT k, v FROM y)
SELECT id FROM x WHERE (k, v) NOT IN (SELECT k, v FROM y WHERE v IS NOT NULL AND k IS NOT NULL)
SELECT id FROM x WHERE (k, v) NOT IN (SELECT k, v FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE (k, v) NOT IN (SELECT k, v FROM z)
SELECT id FROM x WHERE NULL NOT IN (SELECT k FROM z)
SELECT id FROM x WHERE 99 NOT IN (SELECT k FROM y WHERE y.ks = x.ks)
-- IN as a value
SELECT id, k IN (SELECT k FROM y) AS e FROM x
SELECT id, k IN (SELECT k FROM y WHERE k IS NOT NULL) AS e FROM x
SELECT id, k NOT IN (SELECT k FROM y WHERE y.ks = x.ks) AS e FROM x
SELECT id, k IN (SELECT k FROM y WHERE y.v > x.v) AS e FROM x
SELECT id, k IN (SELECT k FROM z) AS e, k NOT IN (SELECT k FROM z) AS f FROM x
SELECT id, (k, v) IN (SELECT k, v FROM y) AS e FROM x
SELECT id, (k, v) NOT IN (SELECT k, v FROM y WHERE y.ks = x.ks) AS e FROM x
SELECT id FROM x WHERE v > 3 OR k IN (SELECT k FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE v > 3 OR k NOT IN (SELECT k FROM y WHERE y.ks = x.ks)
SELECT id FROM x WHERE (k IN (SELECT k FROM y WHERE k > 3)) IS NULL
SELECT id FROM x WHERE CASE WHEN k IN (SELECT k FROM y) THEN v > 0 ELSE v < 0 END
SELECT count_if(k IN (SELECT k FROM y WHERE y.ks = x.ks)) AS n FROM x
SELECT id, k IN (SELECT max(k) FROM y WHERE y.ks = x.ks) AS e FROM x
-- several levels
-- over groups
SELECT k, count(*) AS c FROM x GROUP BY k HAVING EXISTS (SELECT 1 FROM y WHERE y.k = x.k)
SELECT k, count(*) AS c FROM x GROUP BY k HAVING count(*) > (SELECT count(*) FROM y WHERE y.k = x.k)
SELECT k, sum(v) AS c FROM x GROUP BY k HAVING sum(v) IN (SELECT v FROM y)
SELECT k, max(v) AS c FROM x GROUP BY k HAVING max(v) NOT IN (SELECT v FROM y WHERE y.k = x.k)
SELECT k, sum((SELECT count(*) FROM y WHERE y.k = x.k AND y.v > x.v)) AS n FROM x GROUP BY k
-- in join conditions
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND x.v IN (SELECT v FROM y)
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND y.v IN (SELECT v FROM x)
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND EXISTS (SELECT 1 FROM x x2 WHERE x2.v = y.v)
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND x.v > (SELECT avg(v) FROM y)
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND y.v > (SELECT min(v) FROM x)
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND x.v IN (SELECT v FROM y WHERE v > 1)
-- lateral
SELECT x.id, t.a FROM x, LATERAL (SELECT x.v + 1 AS a) t
SELECT x.id, t.a, t.b FROM x, LATERAL (SELECT x.v + 1 AS a, x.k AS b WHERE x.v > 0) t
SELECT x.id, t.n FROM x, LATERAL (SELECT count(*) AS n FROM y WHERE y.k = x.k) t
SELECT x.id, t.n FROM x LEFT JOIN LATERAL (SELECT max(y.v) AS n FROM y WHERE y.k = x.k HAVING count(*) > 1) t
SELECT x.id, t.n FROM x, LATERAL (SELECT max(y.v) AS n FROM y WHERE y.k = x.k HAVING count(*) > 1) t
SELECT x.id, t.id AS yid FROM x, LATERAL (SELECT * FROM y WHERE y.k = x.k) t
SELECT x.id, t.id AS yid FROM x LEFT JOIN LATERAL (SELECT * FROM y WHERE y.k = x.k AND y.v > x.v) t
SELECT x.id, t.a FROM x LEFT JOIN LATERAL (SELECT y.v + x.v AS a, 1 AS b FROM y WHERE y.k = x.k) t ON t.a > 0
SELECT x.id, t.id AS yid FROM x, LATERAL (SELECT y.id, y.v FROM y WHERE y.k = x.k ORDER BY y.v DESC, y.id LIMIT 2) t
SELECT x.id, t.id AS yid FROM x LEFT JOIN LATERAL (SELECT y.id FROM y WHERE y.ks = x.ks ORDER BY y.id LIMIT 1 OFFSET 1) t
SELECT x.id, t.v, t.c FROM x, LATERAL (SELECT y.v, count(*) AS c FROM y WHERE y.k = x.k GROUP BY y.v) t
SELECT x.id, t.v FROM x, LATERAL (SELECT DISTINCT y.v FROM y WHERE y.k < x.k AND y.kb = x.kb) t
SELECT x.id, t.v FROM x, LATERAL (SELECT y.v FROM y WHERE y.k = x.k UNION ALL SELECT x.v) t
SELECT x.id, t.v FROM x, LATERAL (SELECT y.v FROM y WHERE y.k = x.k UNION SELECT x.v) t
SELECT x.id, a.n, b.m FROM x, LATERAL (SELECT count(*) AS n FROM y WHERE y.k = x.k) a, LATERAL (SELECT a.n + 1 AS m) b
SELECT x.id, a.v, b.id AS bid FROM x, LATERAL (SELECT y.v FROM y WHERE y.k = x.k) a, LATERAL (SELECT x2.id FROM x x2 WHERE x2.v = a.v AND x2.id > x.id) b
SELECT x.id, t.r, t.yid FROM x, LATERAL (SELECT y.id AS yid, row_number() OVER (ORDER BY y.v, y.id) AS r FROM y WHERE y.ks = x.ks) t
SELECT x.id, t.id AS zid FROM x LEFT JOIN LATERAL (SELECT * FROM z WHERE z.k = x.k) t
SELECT x.k, sum(t.n) AS n FROM x, LATERAL (SELECT count(*) AS n FROM y WHERE y.k = x.k AND y.v <> x.v) t GROUP BY x.k
-- windows in the subquery
SELECT id, (SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY y.id) AS r FROM y WHERE y.k = x.k) u) AS n FROM x
SELECT id FROM x WHERE v IN (SELECT max(y.v) OVER (PARTITION BY y.ks) FROM y WHERE y.k = x.k)
-- more
SELECT k, count(*) AS c FROM x GROUP BY k HAVING EXISTS (SELECT 1 FROM y WHERE y.v = max(x.v))
SELECT id, (WITH c AS (SELECT max(v) AS m FROM y WHERE y.k = x.k) SELECT m FROM c) AS n FROM x
WITH c AS (SELECT k, max(v) AS m FROM y GROUP BY k) SELECT id, (SELECT m FROM c WHERE c.k = x.k) AS n FROM x
SELECT id, (SELECT first(y.kd) FROM y WHERE y.id = x.id + 200) AS n FROM x
SELECT id, (SELECT y.kd FROM y WHERE y.id = x.id + 200) AS n FROM x
SELECT id, size((SELECT array(y.k, y.v) FROM y WHERE y.id = x.id + 200)) AS n FROM x
SELECT id, size((SELECT collect_list(y.v) FROM y WHERE y.id = x.id + 200)) AS n FROM x
SELECT u.k, (SELECT count(*) FROM y WHERE y.k = u.k AND y.v < u.s) AS n FROM (SELECT k, sum(v) AS s FROM x GROUP BY k) u
SELECT u.id, (SELECT count(*) FROM y WHERE y.v < u.v) AS n FROM (SELECT id, v FROM x ORDER BY id LIMIT 7) u
SELECT a.id, (SELECT count(*) FROM y WHERE y.k = a.k AND y.v < b.v) AS n FROM x a JOIN x b ON a.k = b.k AND a.id < b.id
SELECT id FROM x WHERE (SELECT count(*) FROM y WHERE y.k < x.k) > 5 AND (SELECT max(y.v) FROM y WHERE y.v < x.v) < 3 AND (SELECT count(*) FROM y WHERE y.v <> x.v) > 2
SELECT id FROM x WHERE v IN (SELECT y.v FROM y WHERE y.k = x.k) AND k IN (SELECT y.k FROM y WHERE y.v > x.v)
SELECT id FROM x WHERE (v IN (SELECT v FROM y)) = false
SELECT id, (v IN (SELECT v FROM y)) = false AS a, (v IN (SELECT v FROM y)) <> true AS b, (v IN (SELECT v FROM y)) <=> false AS c FROM x
SELECT id, NOT (k IN (SELECT k FROM y WHERE k > 2) AND v > 0) AS a, NOT (k IN (SELECT k FROM y WHERE k > 2) OR v > 3) AS b FROM x
SELECT id, NULL IN (SELECT k FROM y) AS a, NULL NOT IN (SELECT k FROM z) AS b FROM x
SELECT id FROM x WHERE kl IN (SELECT k FROM y)
SELECT id FROM x WHERE k NOT IN (SELECT kl FROM y WHERE kl IS NOT NULL)
SELECT id FROM x WHERE kc IN (SELECT k FROM y)
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.kl = x.k AND y.v > x.v)
SELECT id FROM x LEFT SEMI JOIN y ON x.k = y.k AND y.v IN (SELECT v FROM x WHERE v > 0)
SELECT id FROM x LEFT ANTI JOIN y ON x.k = y.k AND y.v IN (SELECT v FROM x WHERE v > 0)
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND y.v > (SELECT avg(v) FROM x)
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k = y.k AND EXISTS (SELECT 1 FROM z WHERE z.k = x.k)
SELECT x.id, t.m FROM x LEFT JOIN LATERAL (SELECT y.v AS m FROM y WHERE y.k = x.k) t ON t.m > x.v
SELECT x.id, t.m FROM x JOIN LATERAL (SELECT max(y.v) AS m FROM y WHERE y.k < x.k) t ON t.m > x.v
SELECT x.id, t.m, u.c FROM x LEFT JOIN LATERAL (SELECT y.v AS m FROM y WHERE y.k = x.k) t LEFT JOIN LATERAL (SELECT count(*) AS c FROM y WHERE y.v = t.m) u
SELECT x.id, t.n FROM x, LATERAL (SELECT count(*) AS n FROM y WHERE y.k = x.k GROUP BY y.ks) t
SELECT x.id, t.a FROM x, LATERAL (SELECT y.v AS a FROM y LEFT JOIN z ON z.k = y.k AND z.v = x.v WHERE y.ks = x.ks) t
SELECT x.id, t.a, t.b FROM x, LATERAL (SELECT a.id AS a, b.id AS b FROM y a FULL JOIN y b ON a.k = b.v WHERE a.k = x.k) t
SELECT x.id, t.a FROM x, LATERAL (SELECT y.v AS a FROM y WHERE y.k = x.k ORDER BY y.v LIMIT 0) t
SELECT t.* FROM LATERAL (SELECT k, v FROM x) t
