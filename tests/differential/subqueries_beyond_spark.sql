-- refused by Spark; DuckDB itself says what is right
SELECT id, (SELECT count(*) + x.v FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT coalesce(max(y.v), x.v, -99) FROM y WHERE y.k = x.k) AS n FROM x
SELECT id, (SELECT sum(x.v * y.v) FROM y WHERE y.ks = x.ks) AS n FROM x
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM (SELECT * FROM y WHERE y.v = x.v) a FULL JOIN (SELECT * FROM x x2 WHERE x2.k = x.k AND x2.id <> x.id) b ON a.k = b.k WHERE a.id IS NULL)
SELECT id FROM x ORDER BY EXISTS (SELECT 1 FROM y WHERE y.k = x.k), id
SELECT id FROM x ORDER BY k IN (SELECT k FROM y WHERE k > 4), id
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND EXISTS (SELECT 1 FROM x x2 WHERE x2.v = y.v AND x2.ks = x.ks))
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND NOT EXISTS (SELECT 1 FROM x x2 WHERE x2.v = y.v AND x2.v <> x.v))
SELECT id, (SELECT count(*) FROM y WHERE y.k = x.k AND y.v > (SELECT avg(x2.v) FROM x x2 WHERE x2.ks = x.ks)) AS n FROM x
SELECT id, (SELECT max((SELECT count(*) FROM x x2 WHERE x2.k = y.k AND x2.v < x.v)) FROM y WHERE y.ks = x.ks) AS n FROM x
SELECT id FROM x WHERE k IN (SELECT k FROM y WHERE v IN (SELECT v FROM x x2 WHERE x2.ks = x.ks AND x2.k = y.k))
SELECT id FROM x WHERE k NOT IN (SELECT k FROM y WHERE v NOT IN (SELECT v FROM x x2 WHERE x2.ks = x.ks))
SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE EXISTS (SELECT 1 FROM x x2 WHERE x2.k = x.k AND x2.id <> x.id) AND y.v = x.v)
SELECT id, (SELECT (SELECT max(v) FROM y WHERE y.k = x.k)) AS n FROM x
SELECT k, (SELECT count(*) FROM y WHERE y.k = x.k) AS n FROM x GROUP BY k
SELECT k, ks, (SELECT max(y.v) FROM y WHERE y.k = x.k AND y.ks <> x.ks) AS m FROM x GROUP BY k, ks
SELECT k FROM x GROUP BY k ORDER BY (SELECT count(*) FROM y WHERE y.k = x.k), k
SELECT x.id, (SELECT sum(t.a) FROM y, LATERAL (SELECT y.v + x.v AS a) t WHERE y.k = x.k) AS s FROM x
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND x.v + y.v IN (SELECT v FROM x)
