-- no equality
SELECT x.id, y.id FROM x JOIN y ON x.k < y.k
SELECT x.id, y.id FROM x JOIN y ON x.v BETWEEN y.v - 1 AND y.v + 1
SELECT x.id, y.id FROM x JOIN y ON x.k < y.k AND x.v > y.v
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k OR x.v = y.v
SELECT x.id, y.id FROM x JOIN y ON x.k <> y.k WHERE x.v > 3
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k < y.k
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k < y.k AND x.v > y.v + 2
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k OR x.ks = y.ks
SELECT x.id, y.id FROM x LEFT JOIN y ON x.v > 3
SELECT x.id, y.id FROM x LEFT JOIN y ON y.v > 3
SELECT x.id, y.id FROM x LEFT JOIN y ON false
SELECT x.id, y.id FROM x LEFT JOIN y ON true WHERE x.v = 1
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k > y.k + 5
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k < y.k AND x.ks < y.ks
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.v > 4
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k = y.k OR x.v > y.v + 6
SELECT x.id, y.id FROM x FULL JOIN y ON x.k > y.k + 5
SELECT x.id, y.id FROM x FULL JOIN y ON x.k < y.k AND x.v > y.v + 3
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k OR x.v = y.v
SELECT x.id, y.id FROM x FULL JOIN y ON x.v > 4
SELECT x.id, y.id FROM x FULL JOIN y ON x.v > 4 AND y.v > 4
SELECT x.id, y.id FROM x FULL JOIN y ON false
SELECT x.id, y.id FROM x FULL JOIN y ON true WHERE coalesce(x.v, 1) = 1 AND coalesce(y.v, 1) = 1
SELECT x.id, z.id FROM x FULL JOIN z ON x.k < z.k
SELECT z.id, x.id FROM z FULL JOIN x ON x.k < z.k
SELECT x.id, z.id FROM x LEFT JOIN z ON x.k < z.k
SELECT x.id FROM x LEFT SEMI JOIN y ON x.k < y.k
SELECT x.id FROM x LEFT SEMI JOIN y ON x.k < y.k AND x.v > y.v
SELECT x.id FROM x LEFT SEMI JOIN y ON x.k = y.k OR x.v = y.v
SELECT x.id FROM x LEFT SEMI JOIN y ON x.v > 0
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k < y.k
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k < y.k AND x.v > y.v
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k = y.k OR x.v = y.v
SELECT x.id FROM x LEFT ANTI JOIN y ON x.v > 0
SELECT x.id FROM x LEFT ANTI JOIN z ON x.k < z.k
-- null-safe equality
SELECT x.id, y.id FROM x JOIN y ON x.k <=> y.k
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k <=> y.k AND x.ks <=> y.ks
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.ks <=> y.ks AND x.v = y.v
SELECT x.id, y.id FROM x FULL JOIN y ON x.k <=> y.k
SELECT x.id, y.id FROM x FULL JOIN y ON x.k <=> y.k AND x.v = y.v
SELECT x.id, y.id FROM x FULL JOIN y ON x.k <=> y.k AND x.v > y.v
SELECT x.id FROM x LEFT SEMI JOIN y ON x.kl <=> y.kl AND x.ks <=> y.ks
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k <=> y.k
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k <=> y.k AND x.v = y.v AND x.ks <=> y.ks
SELECT x.id, y.id FROM x JOIN y ON x.kd <=> y.kd
SELECT x.id, y.id FROM x JOIN y ON x.kc <=> y.kc AND x.kt <=> y.kt AND x.kb <=> y.kb
SELECT x.id, y.id FROM x JOIN y ON x.k <=> y.kl
SELECT x.id, y.id FROM x JOIN y ON x.k + 1 <=> y.k
SELECT x.id, y.id FROM x JOIN y ON NOT x.kb <=> y.kb AND x.k = y.k
SELECT a.id, b.id, c.id FROM x a JOIN y b ON a.k <=> b.k JOIN z c ON b.k <=> c.k
SELECT a.id, b.id, c.id FROM x a LEFT JOIN y b ON a.k <=> b.k AND a.v <=> b.v LEFT JOIN y c ON b.k <=> c.k AND b.id = c.id
SELECT x.k, count(y.id) AS n FROM x LEFT JOIN y ON x.k <=> y.k GROUP BY x.k
-- equality and more
SELECT x.id, y.id FROM x LEFT JOIN y ON x.k = y.k AND x.v < y.v
SELECT x.id, y.id FROM x RIGHT JOIN y ON x.k = y.k AND x.v < y.v AND x.ks <> y.ks
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND x.v < y.v
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND x.v > 0
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND (x.v > y.v OR y.ks IS NULL)
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND x.v + y.v > 0
SELECT x.id FROM x LEFT SEMI JOIN y ON x.k = y.k AND (x.v > y.v OR x.ks = y.ks)
SELECT x.id FROM x LEFT ANTI JOIN y ON x.k = y.k AND (x.v > y.v OR x.ks = y.ks)
SELECT x.id, y.id FROM x JOIN y ON x.k = y.k AND x.k = y.v
SELECT x.id, y.id FROM x JOIN y ON x.k = 3 AND y.k = 3
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k AND x.k = 3
-- USING and NATURAL
SELECT * FROM x JOIN y USING (k)
SELECT * FROM x LEFT JOIN y USING (k, ks)
SELECT * FROM x RIGHT JOIN y USING (k)
SELECT * FROM x FULL JOIN y USING (k, ks)
SELECT * FROM x LEFT SEMI JOIN y USING (k, ks)
SELECT * FROM x LEFT ANTI JOIN y USING (k)
SELECT k, x.k, y.k FROM x LEFT JOIN y USING (k)
SELECT k, x.k, y.k FROM x RIGHT JOIN y USING (k)
SELECT k, x.k, y.k FROM x FULL JOIN y USING (k)
SELECT k, count(*) AS n FROM x FULL JOIN y USING (k) GROUP BY k
SELECT k, x.id FROM x FULL JOIN y USING (k) WHERE k > 5
SELECT * FROM (SELECT k, v FROM x) NATURAL JOIN (SELECT k, w FROM y)
SELECT * FROM (SELECT k, v FROM x) NATURAL LEFT JOIN (SELECT k, w FROM y)
SELECT * FROM (SELECT k, v FROM x) NATURAL RIGHT JOIN (SELECT w, k FROM y)
SELECT * FROM (SELECT k, v FROM x) NATURAL FULL JOIN (SELECT w, k FROM y)
SELECT * FROM (SELECT k, ks, v FROM x) NATURAL FULL JOIN (SELECT ks, k, w FROM y)
SELECT * FROM (SELECT k FROM x WHERE v > 3) NATURAL JOIN (SELECT w FROM y WHERE v > 3)
SELECT * FROM x JOIN y USING (k) JOIN z USING (k)
SELECT * FROM (SELECT k, id FROM x) FULL JOIN (SELECT k, id AS i2 FROM y) USING (k) FULL JOIN (SELECT k, id AS i3 FROM x) USING (k)
SELECT * FROM (SELECT k, id FROM x) JOIN (SELECT kl AS k, id AS i2 FROM y) USING (k)
SELECT * FROM (SELECT k, id FROM x) FULL JOIN (SELECT kl AS k, id AS i2 FROM y) USING (k)
SELECT x.*, y.id FROM x LEFT JOIN y USING (k)
-- several
SELECT a.id, b.id, c.id FROM x a LEFT JOIN y b ON a.k = b.k FULL JOIN x c ON b.v = c.v AND a.id < c.id
SELECT a.id, b.id, c.id FROM x a JOIN y b ON a.k < b.k LEFT JOIN z c ON c.k = b.k
SELECT a.id, b.id, c.id FROM x a RIGHT JOIN y b ON a.k = b.k LEFT JOIN x c ON a.v = c.v AND c.id > 200
SELECT a.id, b.id FROM x a CROSS JOIN y b WHERE a.k < b.k AND a.ks = b.ks
SELECT a.id, b.id FROM x a, y b WHERE a.k = b.k OR (a.v = b.v AND a.ks = b.ks)
SELECT a.id, b.id FROM (x a JOIN y b ON a.k = b.k) WHERE a.v > b.v
SELECT a.id, c.id FROM x a LEFT JOIN (y b JOIN x c ON b.k = c.k) ON a.v = b.v
SELECT y.*, x.id FROM x FULL JOIN y USING (ks, k)
SELECT * FROM (x LEFT JOIN y USING (k)) JOIN z USING (k)
SELECT * FROM x LEFT JOIN (y JOIN z USING (k)) USING (k)
