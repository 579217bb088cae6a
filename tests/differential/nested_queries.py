"""Queries that group, join, sort and exchange arrays, structs and maps.

Each must run on DuckDB alone, however it is distributed, and give what Spark gives.
"""

from __future__ import annotations

_PAIRS = "SELECT a.id AS x, b.id AS y FROM np AS a JOIN n AS b ON"

QUERIES = [
    "SELECT ai, count(*) AS c FROM np GROUP BY ai",
    "SELECT ad, count(*) AS c FROM np GROUP BY ad",
    "SELECT st, sum(k) AS t, max(st.f) AS f FROM np GROUP BY st",
    "SELECT aa, sn.p, count(*) AS c FROM np GROUP BY aa, sn.p",
    "SELECT st.g AS g, count(*) AS c FROM np GROUP BY st.g",
    "SELECT transform(ai, x -> x > 0) AS t, count(*) AS c FROM np GROUP BY transform(ai, x -> x > 0)",
    "SELECT DISTINCT ast, ad FROM np",
    "SELECT ai FROM np UNION SELECT bi FROM n",
    "SELECT st FROM np INTERSECT SELECT su FROM n",
    "SELECT ad FROM np EXCEPT SELECT bd FROM n",
    f"{_PAIRS} a.ai = b.ai",
    f"{_PAIRS} a.st = b.su",
    f"{_PAIRS} a.ad = b.bd AND a.k = b.k",
    f"{_PAIRS} a.ast <=> b.ast AND a.k = b.k",
    "SELECT a.id AS x, b.id AS y FROM np AS a LEFT JOIN n AS b ON a.aa = b.ba AND a.k = b.k",
    "SELECT id FROM np WHERE ai IN (SELECT bi FROM n)",
    "SELECT ai, id FROM np ORDER BY ai, id",
    "SELECT ai, id FROM np ORDER BY ai DESC NULLS LAST, id",
    "SELECT aa, id FROM np ORDER BY aa DESC, id LIMIT 40",
    "SELECT st, id FROM np ORDER BY st NULLS LAST, id",
    "SELECT ast, id FROM np ORDER BY ast DESC, id",
    "SELECT ad, sn.p AS p, id FROM np ORDER BY ad, p, id",
    "SELECT a.id AS x, a.deep AS deep, b.mi AS mi, b.sn AS sn FROM np AS a JOIN np AS b ON a.id = b.id",
    "SELECT a.k AS k, b.ms AS ms, b.ast AS ast FROM np AS a JOIN np AS b ON a.k = b.j",
    "SELECT st.f AS f, get(deep, 0).m['a'] AS x, sn.p.a AS y FROM np WHERE st.g = 'a' OR k > 2",
    "SELECT id, ai FROM np WHERE exists(ai, x -> x > k) ORDER BY id",
    "SELECT id, transform(aa, z -> z[0] = y[0]) AS v FROM (SELECT id, array(array(k), array(1)) AS aa, transform(al, x -> CAST(x % 7 AS INT)) AS y FROM np) AS t WHERE size(y) > 0",
    "SELECT k, sum(aggregate(al, 0L, (acc, x) -> acc + coalesce(x, 0L))) AS t FROM np GROUP BY k",
    "SELECT t.v.f AS f, t.v.g AS g FROM (SELECT struct(k AS f, s AS g) AS v FROM np) AS t",
    "SELECT id, (SELECT max(b.k) FROM n AS b WHERE b.id = a.st.f) AS m FROM np AS a",
    "SELECT * FROM np WHERE id % 2 = 0",
]
