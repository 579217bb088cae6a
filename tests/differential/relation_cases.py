"""Queries over the relation tables, by family; every one is staged and runs on DuckDB.

`ERRORS` are queries that both Spark and the planner refuse; `FALLBACKS` say why they are Spark's.
"""

from __future__ import annotations

import itertools

SETS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS", "MINUS ALL"]  # fmt: skip
ITEMS = ["a", "c, d", "a, b, c, d, v, day"]


def _set_operations() -> list[str]:
    pairs = itertools.product(SETS[:6], ITEMS)
    found = [f"SELECT {items} FROM t {name} SELECT {items} FROM u" for name, items in pairs]
    found += [f"SELECT a, b FROM t {name} SELECT a, b FROM u" for name in SETS[6:]]
    for name in SETS[2:6]:
        found.append(f"SELECT a, b FROM none {name} SELECT a, b FROM t")
        found.append(f"SELECT a, b FROM t {name} SELECT a, b FROM none")
        found.append(f"SELECT count(*) FROM (SELECT a FROM t {name} SELECT a FROM u)")
    return found


ROLLUPS = ["ROLLUP(a, b)", "CUBE(a, b)", "GROUPING SETS ((a, b), (a), (b), ())", "GROUPING SETS ((a), (b))", "a, ROLLUP(b)", "GROUPING SETS ((a, b), (a), (a))"]  # fmt: skip

FAMILIES: dict[str, list[str]] = {
    "set operations": _set_operations(),
    "nested set operations": [
        "SELECT a FROM t UNION SELECT a FROM u INTERSECT SELECT a FROM none",
        "(SELECT a FROM t UNION ALL SELECT a FROM u) EXCEPT ALL SELECT a FROM u",
        "SELECT a FROM t EXCEPT SELECT a FROM u EXCEPT SELECT 3",
        "SELECT a FROM t INTERSECT SELECT a FROM u UNION ALL SELECT 9 ORDER BY a DESC NULLS LAST",
        "SELECT a, id FROM t INTERSECT SELECT a, id FROM u ORDER BY id + 1, 1",
        "SELECT a AS x FROM t EXCEPT ALL SELECT v FROM u ORDER BY x LIMIT 3",
        "SELECT a FROM t EXCEPT SELECT c FROM u",
        "SELECT v FROM t INTERSECT SELECT a FROM u",
        "SELECT day FROM t EXCEPT SELECT NULL",
        "SELECT a FROM t EXCEPT SELECT b FROM u WHERE b = '1'",
        "SELECT * FROM t EXCEPT ALL SELECT * FROM t",
        "SELECT * FROM t INTERSECT ALL SELECT * FROM t",
        "SELECT b FROM (SELECT a, b FROM t INTERSECT SELECT a, b FROM u) WHERE a = 1",
        "SELECT x.a, y.b FROM (SELECT a FROM t INTERSECT SELECT a FROM u) x JOIN u y ON x.a = y.a",
        "WITH both AS (SELECT a, b FROM t EXCEPT SELECT a, b FROM u) SELECT p.a FROM both p, both q WHERE p.a <=> q.a",
        "SELECT id FROM t WHERE a IN (SELECT a FROM t EXCEPT SELECT a FROM u WHERE a > 2)",
        "SELECT (SELECT count(*) FROM (SELECT a FROM t INTERSECT SELECT a FROM u)) AS n",
        "SELECT a FROM t INTERSECT ALL (SELECT a FROM u UNION ALL SELECT a FROM u)",
        "SELECT count(*), sum(id) FROM (SELECT id, st FROM n INTERSECT SELECT id, st FROM n WHERE k = 1)",
        "SELECT count(*) FROM (SELECT xs, ys FROM n EXCEPT ALL SELECT xs, ys FROM n WHERE id < 4)",
        "(SELECT a FROM t ORDER BY id LIMIT 3) EXCEPT (SELECT a FROM u ORDER BY id LIMIT 1)",
    ],
    "grouping sets": [
        *(f"SELECT a, b, sum(v), count(*), grouping_id() FROM t GROUP BY {s}" for s in ROLLUPS),
        *(f"SELECT a, b, max(c), avg(v) FROM none GROUP BY {s}" for s in ROLLUPS),
        "SELECT a, b, count(*) FROM t GROUP BY a, b WITH ROLLUP",
        "SELECT a, b, count(*) FROM t GROUP BY a, b WITH CUBE",
        "SELECT a, b, count(*) FROM t GROUP BY a, b GROUPING SETS ((a), (b, a))",
        "SELECT a, b, sum(a), min(b) FROM t GROUP BY CUBE(a, b)",
        "SELECT a, grouping(a), b, grouping(b), grouping_id(a, b) FROM t GROUP BY CUBE(a, b)",
        "SELECT a, b, c, count(*) FROM t GROUP BY ROLLUP((a, b), c)",
        "SELECT a, b, c, count(*) FROM t GROUP BY a, CUBE(b), ROLLUP(c)",
        "SELECT a, b, c, count(*) FROM t GROUP BY GROUPING SETS (ROLLUP(a, b), CUBE(c), (), (a, c))",
        "SELECT d, count(*) FROM t GROUP BY ROLLUP(d)",
        "SELECT a + 1 AS x, sum(v) FROM t GROUP BY ROLLUP(x)",
        "SELECT a % 2, b, sum(v) FROM t GROUP BY ROLLUP(1, 2)",
        "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP(a) HAVING grouping(a) = 0 AND n > 1",
        "SELECT a, sum(v) AS s FROM t GROUP BY ROLLUP(a) ORDER BY grouping(a), a, s",
        "SELECT a, b, count(DISTINCT c) FROM t GROUP BY ROLLUP(a, b)",
        "SELECT a, count(DISTINCT b), count(DISTINCT c), sum(v) FROM t GROUP BY CUBE(a)",
        "SELECT a, sum(v) FILTER (WHERE id > 3), avg(c) FROM t GROUP BY ROLLUP(a)",
        "SELECT count(*), sum(v) FROM none GROUP BY GROUPING SETS (())",
        "SELECT count(*) FROM none GROUP BY GROUPING SETS ((), ())",
        "SELECT a, count(*) FROM none GROUP BY GROUPING SETS ((), (a))",
        "SELECT a FROM t GROUP BY CUBE(a)",
        "SELECT DISTINCT b FROM t GROUP BY ROLLUP(a, b)",
        "SELECT x.a, sum(y.v) FROM t x JOIN u y ON x.a = y.a GROUP BY ROLLUP(x.a)",
        "SELECT a, n FROM (SELECT a, b, count(*) AS n FROM t GROUP BY CUBE(a, b)) WHERE a = 1 AND b IS NULL",
        "SELECT k, sum(n) FROM (SELECT a AS k, count(*) AS n FROM t GROUP BY ROLLUP(a)) GROUP BY k",
        "SELECT CASE WHEN grouping(a) = 1 THEN 'all' ELSE b END AS c, count(*) FROM t GROUP BY ROLLUP(b, a)",
        "SELECT a, b, day, count(*), sum(c), min(v), max(d IS NULL) AS m FROM t GROUP BY CUBE(a, b, day)",
        "SELECT a, rank() OVER (ORDER BY sum(v), a), grouping(a) FROM t GROUP BY ROLLUP(a)",
        "SELECT online, paid, count(*), sum(amount), avg(units), min(region) FROM sales GROUP BY CUBE(online, paid)",
        "SELECT paid, online, count(amount), max(units) FROM sales GROUP BY GROUPING SETS ((paid), (online), (paid))",
        "SELECT online, sum(units) FILTER (WHERE paid), grouping(online) FROM sales GROUP BY ROLLUP(online)",
        "SELECT online, count(*), bool_or(online) FROM sales GROUP BY ROLLUP(online) HAVING count(*) > 1",
        "SELECT count(*) FROM t GROUP BY (a, b)",
        "SELECT a, count(*) FROM t GROUP BY a, (b, c)",
        "SELECT b, a, count(*) FROM t GROUP BY ALL",
        "SELECT 1, count(*) FROM t GROUP BY ROLLUP(1)",
    ],
    "values and range": [
        "VALUES (1, 'a'), (2, NULL)",
        "VALUES 1, 2, 3",
        "VALUES (1), (3), (2) ORDER BY 1 DESC LIMIT 2",
        "SELECT * FROM VALUES (1, 2), (3, 4) AS v(x, y)",
        "SELECT x + y, v.x FROM (VALUES (1, 2), (3, NULL)) AS v(x, y) WHERE x > 0",
        "SELECT * FROM VALUES (1), (2.5), (NULL)",
        "SELECT * FROM VALUES (1 + 1, upper('a')), (-3, 'b' || 'c')",
        "SELECT * FROM VALUES (DATE'2020-01-01'), (TIMESTAMP'2021-02-03 04:05:06')",
        "SELECT * FROM VALUES (CAST(1 AS tinyint), 1L, 1.5D, true, X'00'), (2, 2, 0, false, X'FF')",
        "SELECT * FROM VALUES (NULL), (NULL)",
        "SELECT t.id, x FROM t JOIN VALUES (1, 'one'), (2, 'two') AS v(k, x) ON t.a = v.k",
        "SELECT t.id, x FROM t LEFT JOIN VALUES (1, 'one'), (1, 'uno') AS v(k, x) ON t.a = v.k",
        "SELECT k, x, id FROM VALUES (1, 'one'), (7, 'seven') AS v(k, x) LEFT JOIN t ON t.a = v.k",
        "SELECT k, id FROM VALUES (1), (7) AS v(k) FULL JOIN t ON t.a = v.k",
        "WITH c AS (VALUES (1, 'a'), (2, 'b')) SELECT col2 FROM c WHERE col1 > 1",
        "WITH c(p, q) AS (VALUES (1, 'a'), (2, 'b')) SELECT q, p FROM c",
        "SELECT a FROM t UNION ALL VALUES (100), (NULL)",
        "SELECT count(*), sum(col1) FROM VALUES (1), (2)",
        "SELECT x, count(*) FROM VALUES ('a'), ('a'), (NULL) v(x) GROUP BY x",
        "TABLE t", "SELECT * FROM (TABLE u) x WHERE a = 1", "TABLE t UNION ALL TABLE u",
        "WITH c AS (TABLE sales) SELECT count(*) FROM c",
        "SELECT * FROM range(5)", "SELECT * FROM range(2, 6) AS r(n)", "SELECT * FROM range(10, 0, -3)",
        "SELECT * FROM range(0, 10, 4, 2)", "SELECT id * 2 FROM range(1 + 2) r", "SELECT * FROM range(5, 2)",
        "SELECT count(*), min(id), max(id) FROM range(9223372036854775800, 9223372036854775807)",
        "SELECT r.id, t.b FROM range(4) r JOIN t ON r.id = t.a",
        "SELECT id FROM t UNION ALL SELECT id FROM range(3)",
        "SELECT t.id, n FROM t CROSS JOIN range(2) r(n)",
        "SELECT sum(id) FROM range(1000) WHERE id % 3 = 0",
    ],
    "stars, order and limits": [
        "SELECT * EXCEPT (a, b) FROM t", "SELECT t.* EXCEPT (d), id AS again FROM t", "SELECT * EXCEPT (T.A) FROM t",
        "SELECT x.*, y.* EXCEPT (id) FROM t x JOIN u y ON x.id = y.id", "SELECT st.* FROM n", "SELECT id, n.st.*, st.p AS p2 FROM n",
        "SELECT *, * FROM wide", "SELECT w.*, w.id FROM wide w", "SELECT * FROM t JOIN u USING (id, a)",
        "SELECT * EXCEPT (a) FROM t JOIN u USING (id, a)", "SELECT count(*) FROM (SELECT * EXCEPT (a) FROM t)",
        "SELECT a, b FROM t ORDER BY ALL", "SELECT a, id FROM t ORDER BY ALL DESC", "SELECT b, id FROM t ORDER BY ALL NULLS LAST LIMIT 4",
        "SELECT id FROM t ORDER BY id LIMIT ALL", "SELECT id FROM t ORDER BY id LIMIT 1 + 2", "SELECT id FROM t ORDER BY id LIMIT 2 * 3 OFFSET 10 - 8",
        "SELECT id FROM t ORDER BY id LIMIT 0",
        "SELECT id FROM t SORT BY a DESC", "SELECT id, a FROM t DISTRIBUTE BY a SORT BY b", "SELECT id FROM t CLUSTER BY a",
        "SELECT a, count(*) FROM t GROUP BY a SORT BY a", "SELECT sum(id) FROM (SELECT id FROM t DISTRIBUTE BY a)",
        "SELECT a AS x, a AS x FROM t", "SELECT A, iD, B FROM T WHERE Id < 4", "SELECT t.Id FROM t ORDER BY T.ID LIMIT 2",
        "FROM t SELECT id WHERE a = 1",
    ],
    "names": [
        "SELECT * FROM `odd names`", "SELECT `Mixed Case`, `dot.ted`, `ключ`, upper, `select` FROM `odd names`",
        "SELECT o.`MIXED case`, `UPPER` FROM `odd names` AS o", "SELECT `odd names`.`dot.ted` FROM `odd names`",
        "SELECT `dot.ted`, sum(`Mixed Case`) AS `sum of it` FROM `odd names` GROUP BY `dot.ted`",
        "SELECT `a b`.`c d` FROM (SELECT id AS `c d` FROM t) `a b`", "SELECT IDENTIFIER('a'), IDENTIFIER('t.id') FROM IDENTIFIER('t')",
        "SELECT IDENTIFIER('i' || 'd') FROM t", "WITH t(x, y) AS (SELECT id, a FROM u) SELECT * FROM t",
        "WITH t AS (SELECT id FROM t WHERE a = 1) SELECT count(*) FROM t", "WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b",
        "WITH a AS (WITH a AS (SELECT 2 AS x) SELECT x * 10 AS x FROM a) SELECT x FROM a",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT * FROM a) b, a",
        "WITH c AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT p.a, q.n FROM c p JOIN c q ON p.n = q.n",
        "SELECT x.id, y.id FROM (SELECT id, a FROM t) x JOIN (SELECT id, a FROM u) y ON x.a = y.a",
    ],
    "generators": [
        "SELECT explode(xs) FROM n", "SELECT id, explode(xs) AS x FROM n", "SELECT id, explode_outer(xs) AS x FROM n", "SELECT id, posexplode(ys) FROM n",
        "SELECT id, posexplode_outer(ys) AS (p, y) FROM n", "SELECT id, explode(m) FROM n", "SELECT id, explode_outer(m) AS (k2, v) FROM n",
        "SELECT id, posexplode(m) FROM n", "SELECT id, posexplode_outer(m) FROM n", "SELECT id, inline(ps) FROM n", "SELECT id, inline_outer(ps) AS (p, q) FROM n",
        "SELECT id, stack(2, id, 'a', k, 'b') FROM n", "SELECT stack(3, id, k) AS x, s FROM n", "SELECT id, stack(2, NULL, 1.5) AS x FROM n",
        "SELECT explode(xs) AS x, explode(ys) AS y, id FROM n", "SELECT explode(xs) AS x, x + 1 AS z FROM n", "SELECT DISTINCT explode(xs) FROM n",
        "SELECT explode(xs) AS x FROM n ORDER BY x DESC NULLS LAST", "SELECT id, explode(xs) AS x FROM n WHERE k = 1 LIMIT 100",
        "SELECT k, explode(array(k, count(*))) AS x FROM n GROUP BY k", "SELECT explode(array(1, 2, NULL)) AS x", "SELECT explode(map('a', 1, 'b', 2))",
        "SELECT posexplode(array('x'))", "SELECT id, x FROM n LATERAL VIEW explode(xs) e AS x", "SELECT id, x FROM n LATERAL VIEW OUTER explode(xs) e AS x",
        "SELECT id, e.x, f.* FROM n LATERAL VIEW explode(xs) e AS x LATERAL VIEW posexplode(ys) f AS p, y", "SELECT id, key, value FROM n LATERAL VIEW explode(m) kv",
        "SELECT id, a, b FROM n LATERAL VIEW explode(nested) x AS l LATERAL VIEW OUTER explode(l) y AS a LATERAL VIEW stack(1, a) z AS b",
        "SELECT x, count(*), sum(id) FROM n LATERAL VIEW explode(xs) e AS x GROUP BY x", "SELECT id, x FROM n LATERAL VIEW explode(xs) e AS x WHERE x > 1 AND id < 5",
        "SELECT n.id, u.id, x FROM n JOIN u ON n.k = u.a LATERAL VIEW explode(xs) e AS x", "SELECT * FROM explode(array(3, 4))", "SELECT x FROM explode(array(3, 4)) AS e(x)",
        "SELECT * FROM stack(2, 1, 'a', 2) AS s(x, y)", "SELECT * FROM posexplode(array('p', 'q'))", "SELECT * FROM inline(array(struct(1, 'a'), struct(2, NULL)))",
        "SELECT id, x FROM n, LATERAL explode(n.xs) AS e(x)", "SELECT id, x FROM n JOIN LATERAL explode(xs) AS e(x) ON x > id", "SELECT id, x FROM n LEFT JOIN LATERAL explode(xs) AS e(x) ON true",
        "SELECT id, key, value FROM n, LATERAL explode(m)", "SELECT count(*) FROM n LATERAL VIEW explode(xs) e AS x", "SELECT id FROM n LATERAL VIEW OUTER inline(ps) i AS p, q WHERE p IS NULL",
        "SELECT e.x FROM (SELECT explode(xs) AS x FROM n) e JOIN u ON e.x = u.a", "SELECT st.q, explode(xs) FROM n", "SELECT id, x FROM n LATERAL VIEW explode(array(id, k)) e AS x",
    ],
    "pivot": [
        "SELECT * FROM (SELECT year, quarter, amount FROM sales) PIVOT (sum(amount) FOR quarter IN (1, 2, 3))",
        "SELECT * FROM (SELECT year, quarter, amount FROM sales) PIVOT (sum(amount) AS s, count(*) FOR quarter IN (1 AS one, 2, NULL))",
        "SELECT * FROM sales PIVOT (count(amount) FOR region IN ('east', '', NULL, 'nowhere'))", "SELECT * FROM sales PIVOT (max(amount) m, avg(units) FOR quarter IN (4 AS q4))",
        "SELECT * FROM (SELECT year, quarter, region, units FROM sales) PIVOT (sum(units) FOR (quarter, region) IN ((1, 'east') AS a, (2, 'west'), (NULL, 'east')))",
        "SELECT p.x FROM sales PIVOT (sum(units) AS s FOR quarter IN (1 AS x)) AS p WHERE p.x > 1", "SELECT sales.year, `2` FROM sales PIVOT (sum(units) FOR quarter IN (1, 2))",
        "SELECT * FROM (SELECT units, quarter FROM sales) PIVOT (sum(units) FOR quarter IN (1, 2))", "SELECT * FROM (SELECT units, quarter FROM sales WHERE year = 1) PIVOT (sum(units) FOR quarter IN (1, 2))",
        "SELECT * FROM (SELECT year, quarter, amount FROM sales) PIVOT (sum(amount) FOR quarter IN ('1', 2.0))", "SELECT * FROM (SELECT year, amount, units FROM sales) PIVOT (sum(units) FOR amount IN (10.00, 5.5))",
        "SELECT * FROM (SELECT a, b, v FROM none) PIVOT (sum(v) FOR a IN (1, 2))", "SELECT * FROM (SELECT year, quarter, units FROM sales) PIVOT (count(DISTINCT units) FOR quarter IN (1, 2)) ORDER BY year",
        "SELECT * FROM (SELECT region, year, units FROM sales) PIVOT (min(units) lo, max(units) hi FOR year IN (2023, 2024)) ORDER BY region DESC",
        "SELECT * FROM wide UNPIVOT (v FOR n IN (q1, q2 AS second, q3))", "SELECT * FROM wide UNPIVOT INCLUDE NULLS (v FOR n IN (q1, q2))", "SELECT * FROM wide UNPIVOT EXCLUDE NULLS (v FOR n IN (wide.q1))",
        "SELECT * FROM wide UNPIVOT ((v, w) FOR n IN ((q1, n1) AS x, (q2, n2)))", "SELECT * FROM wide UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((q1, n1), (q3, n2))) AS u",
        "SELECT u.v, u.id FROM wide UNPIVOT (v FOR n IN (q1, q2)) u WHERE u.v > 7", "SELECT wide.id, n FROM wide UNPIVOT (v FOR n IN (q1, q1))", "SELECT n, sum(v) FROM wide UNPIVOT (v FOR n IN (q1, q2, Q3)) GROUP BY n",
        "SELECT * FROM (SELECT id, v FROM wide UNPIVOT (v FOR n IN (q1, q2, q3))) PIVOT (sum(v) FOR id IN (1, 3))",
    ],
    "pipes": [
        "FROM t |> WHERE a > 1 |> SELECT id, b", "FROM t |> WHERE t.a = 1 |> WHERE id > 1 |> EXTEND a + 1 AS x, x + 1 AS y |> WHERE t.a < x", "FROM t |> SET a = id * 2, b = 'c', a = a + 1",
        "FROM t |> DROP d, c |> AS z |> SELECT z.id, z.a", "FROM t |> AGGREGATE count(*) AS n, sum(v)", "FROM t |> AGGREGATE sum(v) AS s, count(*) GROUP BY a AS k, b |> ORDER BY k, b DESC, s |> LIMIT 3",
        "FROM t |> AGGREGATE GROUP BY a", "FROM t |> SELECT sum(v), count(*)", "FROM t |> AGGREGATE max(v) GROUP BY a |> WHERE a IS NOT NULL", "FROM t |> JOIN u USING (id)", "FROM t |> LEFT JOIN u ON t.a = u.a |> SELECT t.id, u.id",
        "FROM t |> AS x |> JOIN u AS y ON x.a = y.a |> WHERE y.v > 0 |> SELECT x.id, y.id", "FROM t |> SELECT a |> UNION ALL SELECT a FROM u |> AGGREGATE count(*) GROUP BY a",
        "FROM t |> SELECT a, b |> EXCEPT ALL (SELECT a, b FROM u)", "TABLE t |> WHERE id < 3",
        "SELECT id, a FROM t WHERE a = 1 |> EXTEND id + a AS s |> ORDER BY s DESC", "FROM t |> ORDER BY id DESC |> LIMIT 2 OFFSET 1", "FROM sales |> SELECT year, quarter, amount |> PIVOT (sum(amount) FOR quarter IN (1, 2))",
        "FROM wide |> UNPIVOT (v FOR n IN (q1, q2)) |> AGGREGATE sum(v) GROUP BY n", "FROM t |> SELECT DISTINCT a, b", "FROM t |> EXTEND row_number() OVER (ORDER BY id) AS r |> WHERE r < 3 |> SELECT r, id",
        "WITH c AS (FROM t |> WHERE a = 1) SELECT count(*) FROM c", "SELECT * FROM (FROM t |> SELECT id, a) x WHERE x.a IN (FROM u |> SELECT a)", "VALUES (1, 2), (3, 4) |> WHERE col1 > 1", "FROM n |> SELECT id, explode(xs) AS x",
    ],
}  # fmt: skip

ERRORS: list[tuple[str, int]] = [
    ("SELECT a FROM t\nUNION SELECT a, b FROM u", 2),
    ("SELECT a FROM t\nINTERSECT\nSELECT kb FROM (SELECT true AS kb) x", 3),
    ("SELECT m FROM n\nEXCEPT SELECT m FROM n", 2),
    ("SELECT a, count(*)\nFROM t GROUP BY b", 1),
    ("SELECT count(*) FROM t\nGROUP BY a, sum(v)", 2),
    ("SELECT count(*) FROM t\nGROUP BY\n3", 0),
    ("SELECT grouping(a) FROM t GROUP BY a", 0),
    ("SELECT grouping(b) FROM t GROUP BY ROLLUP(a)", 0),
    ("SELECT sum(v)\nFILTER (WHERE a) FROM t", 2),
    ("SELECT abs(a) FILTER (WHERE true) FROM t", 1),
    ("SELECT *\nFROM VALUES (1, 2), (3)", 2),
    ("SELECT * FROM VALUES (1), ('a')", 0),
    ("SELECT * FROM range(0, 1, 0)", 0),
    ("SELECT * EXCEPT (nope) FROM t", 1),
    ("SELECT * EXCEPT (a, a) FROM t", 0),
    ("SELECT explode(xs) + 1\nFROM n", 1),
    ("SELECT stack(2, 1, 'a')", 1),
    ("SELECT posexplode(xs) AS p FROM n", 1),
    ("SELECT explode(id) FROM n", 1),
    ("SELECT id FROM t ORDER BY id LIMIT -1", 0),
    ("SELECT id FROM t ORDER BY id LIMIT NULL", 0),
    ("SELECT id FROM t ORDER BY id LIMIT 3L", 0),
    ("SELECT id FROM n ORDER BY id LIMIT id", 0),
    ("SELECT *\nFROM sales PIVOT (abs(amount) FOR quarter IN (1))", 2),
    ("SELECT sum(v) FILTER (WHERE max(a) > 1) FROM t", 1),
    ("SELECT * FROM wide UNPIVOT (v FOR n IN (q1, n1))", 0),
    ("FROM t |> SELECT a, sum(v)", 1),
    ("FROM t |> EXTEND sum(v) AS s", 1),
    ("FROM t\n|> DROP nope", 2),
    ("FROM t |> SET nope = 1", 0),
    ("SELECT id FROM t ORDER BY id SORT BY a", 0),
    ("WITH c(x) AS (SELECT id, a FROM t) SELECT * FROM c", 0),
    ("SELECT x.id FROM t x JOIN u x ON true WHERE x.id = 1", 1),
    ("SELECT zz.* FROM t", 1),
]  # fmt: skip
"""Queries that Spark refuses, and the line of our error (0 where the text gives no place)."""

FALLBACKS: list[tuple[str, str]] = [
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r", "recursive"),
    ("SELECT * FROM t TABLESAMPLE (10 PERCENT)", "SAMPLE"),
]  # fmt: skip

PARTLY_ON_SPARK: list[str] = [
    "SELECT id, json_tuple('{\"a\": 1, \"b\": \"x\"}', 'a', 'b') FROM n",
]
"""Staged, with stages on Spark."""
