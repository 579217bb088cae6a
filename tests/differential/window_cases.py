"""Window functions, by family: calls over the group table, and whole queries.

A call is one case; the calls of a family are asked in one query. Every order ends with the unique
`id`, or the function does not depend on ties.
"""

from __future__ import annotations

import itertools

_RANKS = ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile()", "ntile(3)", "ntile(500)"]  # fmt: skip
_KEYS = ["g", "h", "gd", "gf", "gc", "gt", "b", "bin", "g, h", "h, gd", "h + 1", "never"]
_ORDERS = [
    "i", "i DESC", "i NULLS LAST", "i DESC NULLS FIRST", "s", "s DESC", "d", "d DESC", "f", "gd", "gd DESC NULLS FIRST", "d52", "d384 DESC", "dt",
    "ts DESC", "tn", "b", "bin", "h, gd DESC", "gf, h NULLS LAST", "i % 3, s", "1",
]  # fmt: skip


def _ranking() -> list[str]:
    ties = [f"{rank} OVER (PARTITION BY h ORDER BY {order})" for order in _ORDERS for rank in ("rank()", "dense_rank()", "cume_dist()", "percent_rank()")]  # fmt: skip
    unique = [f"{rank} OVER (PARTITION BY {key} ORDER BY i, id)" for key, rank in itertools.product(_KEYS, ["row_number()", "ntile(3)"])]  # fmt: skip
    whole = [f"{rank} OVER (ORDER BY d52 DESC, id)" for rank in _RANKS]
    return [*ties, *unique, *whole, "rank(i) OVER (ORDER BY h)", "row_number() OVER (PARTITION BY NULL ORDER BY id)"]  # fmt: skip


_FRAMES = [
    "", "ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", "ROWS 2 PRECEDING", "ROWS CURRENT ROW",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING", "ROWS BETWEEN -1 FOLLOWING AND -1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING", "ROWS BETWEEN 100 PRECEDING AND 100 FOLLOWING",
    "RANGE UNBOUNDED PRECEDING", "RANGE CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
]  # fmt: skip
_OVER_FRAMES = ["sum(ti)", "count(s)", "min(s)", "max(dt)", "first(i)", "last(i)", "nth_value(i, 2)", "avg(d52)", "last(s) IGNORE NULLS", "first(dt) IGNORE NULLS", "nth_value(si, 2) IGNORE NULLS"]  # fmt: skip


def _frames() -> list[str]:
    return [f"{call} OVER (PARTITION BY h ORDER BY s, id {frame})" for call, frame in itertools.product(_OVER_FRAMES, _FRAMES)]  # fmt: skip


def _peers() -> list[str]:
    """Frames that end with the peers of a row: no unique order is needed."""
    calls = ["sum(ti)", "count(*)", "min(s)", "max(i)", "avg(i)", "bool_or(b)"]
    orders = ["i", "d DESC", "gd", "s NULLS LAST", "h, gd", "gf DESC"]
    ends = ["", "RANGE CURRENT ROW", "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]
    return [f"{call} OVER (PARTITION BY g ORDER BY {order} {end})" for order, call, end in itertools.product(orders, calls, ends)]  # fmt: skip


_DISTANCES = {
    "ti % 50": ["1 PRECEDING", "BETWEEN 20 PRECEDING AND 30 FOLLOWING", "BETWEEN 5 FOLLOWING AND 9 FOLLOWING", "BETWEEN 1.9 PRECEDING AND CURRENT ROW"],
    "si % 10": ["BETWEEN 2 PRECEDING AND 2 FOLLOWING", "BETWEEN 0 PRECEDING AND 0 FOLLOWING", "BETWEEN -1 FOLLOWING AND 1 FOLLOWING"],
    "h": ["1 PRECEDING", "BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING", "BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "BETWEEN 3 PRECEDING AND 2 PRECEDING"],
    "l % 100": ["BETWEEN 3 PRECEDING AND 3L FOLLOWING"],
    "d52": ["100 PRECEDING", "BETWEEN 99.5 PRECEDING AND 250.25 FOLLOWING", "BETWEEN 0.01 FOLLOWING AND UNBOUNDED FOLLOWING"],
    "gc": ["BETWEEN 1 PRECEDING AND 1.5 FOLLOWING"],
    "d": ["10 PRECEDING", "BETWEEN 0.1 PRECEDING AND 0.1D FOLLOWING", "BETWEEN UNBOUNDED PRECEDING AND 5 FOLLOWING"],
    "gd": ["BETWEEN 1 PRECEDING AND CURRENT ROW", "BETWEEN CURRENT ROW AND 1.5D FOLLOWING"],
    "f": ["BETWEEN 7.5 PRECEDING AND 1 FOLLOWING"],
    "gf": ["BETWEEN 0.1 PRECEDING AND 0 FOLLOWING"],
    "dt": ["1 PRECEDING", "BETWEEN 400 PRECEDING AND 40 FOLLOWING", "BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL '2' DAY FOLLOWING", "BETWEEN INTERVAL 3 WEEKS PRECEDING AND CURRENT ROW", "INTERVAL 1 MONTH PRECEDING", "BETWEEN INTERVAL 1 YEAR PRECEDING AND INTERVAL 2 YEAR FOLLOWING", "BETWEEN INTERVAL '1-1' YEAR TO MONTH PRECEDING AND CURRENT ROW"],
    "gt": ["BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING"],
    "ts": ["INTERVAL 1 HOUR PRECEDING", "BETWEEN INTERVAL 7 DAYS PRECEDING AND INTERVAL 1 DAY FOLLOWING", "BETWEEN INTERVAL '1 02:03:04.5' DAY TO SECOND PRECEDING AND CURRENT ROW", "BETWEEN INTERVAL 1 SECOND FOLLOWING AND UNBOUNDED FOLLOWING"],
    "tn": ["INTERVAL 1 DAY PRECEDING", "BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 300 MONTHS FOLLOWING"],
}  # fmt: skip


def _distances() -> list[str]:
    found = []
    for key, frames in _DISTANCES.items():
        for order, frame in itertools.product(["", " DESC NULLS FIRST"], frames):
            found.append(f"count(*) OVER (ORDER BY {key}{order} RANGE {frame})")
        for order, frame in itertools.product([" DESC", " NULLS LAST"], frames):
            found.append(f"sum(ti) OVER (PARTITION BY h ORDER BY {key}{order} RANGE {frame})")
    return found


_VALUES = ["ti", "i", "l", "d52", "d384", "f", "d", "s", "b", "dt", "ts", "tn", "bin", "never"]


def _shifts() -> list[str]:
    over = "OVER (PARTITION BY h ORDER BY s DESC, id)"
    found = [f"{name}({value}) {over}" for name in ("lag", "lead") for value in _VALUES]
    found += [f"{name}({value}) IGNORE NULLS {over}" for name in ("lag", "lead") for value in _VALUES]  # fmt: skip
    found += [f"{name}(i, {offset}) {over}" for name in ("lag", "lead") for offset in (0, 1, 2, -1, -3, 100)]  # fmt: skip
    found += [f"{name}(i, {offset}) IGNORE NULLS {over}" for name in ("lag", "lead") for offset in (1, 2, 3, -1, -2)]  # fmt: skip
    defaults = ["lag(i, 1, -7)", "lead(i, 2, id)", "lag(s, 1, 'none')", "lead(d52, 1, 0)", "lag(dt, 1, NULL)", "lead(l, 1, 5)", "lag(d, 1, 1)", "lag(i, 1, 5L)", "lead(b, 3, true)", "lag(si * 2, 1, h)", "lead(s, -2, g) RESPECT NULLS"]  # fmt: skip
    return [*found, *(f"{call} {over}" for call in defaults), "lag(i, 2, -7) IGNORE NULLS OVER (ORDER BY id)", "lead(s) OVER (ORDER BY d NULLS LAST, id)"]  # fmt: skip


def _counters() -> list[str]:
    over = "OVER (PARTITION BY h ORDER BY s DESC, id)"
    values = ["id", "abs(CAST(ti AS INT))", "abs(si % 100)", "CASE WHEN i >= 0 THEN i END", "abs(l)", "abs(d52)", "CASE WHEN d384 >= 0 THEN d384 END", "abs(d200)", "never", "CASE WHEN ti >= 0 THEN ti END"]  # fmt: skip
    found = [f"counter_diff({value}) {over}" for value in values]
    return [*found, "counter_diff(id % 7) OVER (ORDER BY id)", "counter_diff(0) OVER (PARTITION BY g ORDER BY id)", "counter_diff(id) OVER (PARTITION BY g, h ORDER BY id DESC) + 1"]  # fmt: skip


def _positions() -> list[str]:
    over = "OVER (PARTITION BY g ORDER BY h DESC, id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING)"
    names = ["first", "last", "first_value", "last_value", "any_value"]
    found = [f"{name}({value}) {over}" for name in ("first", "last") for value in _VALUES]
    found += [f"{name}(i){nulls} {over}" for name in names for nulls in ("", " IGNORE NULLS", " RESPECT NULLS")]  # fmt: skip
    found += [f"{name}(s, {flag}) {over}" for name in names for flag in ("true", "false")]
    found += [f"nth_value(d52, {n}){nulls} {over}" for n in (1, 3, "4L", 9) for nulls in ("", " IGNORE NULLS")]  # fmt: skip
    return [*found, "first(s) OVER (PARTITION BY id)", "last(si + h) OVER (ORDER BY id)", "any_value(i) OVER (PARTITION BY h ORDER BY id DESC)"]  # fmt: skip


_AGGREGATES = [
    "count(*)", "count(1)", "count(NULL)", "count(s)", "count(i, s)", "count_if(b)", "count_if(i > 0)", "sum(ti)", "sum(si)", "sum(i)", "sum(l)", "sum(d52)",
    "sum(d152)", "sum(d200)", "sum(si + 1)", "sum(never)", "avg(ti)", "avg(i)", "avg(d52)", "avg(d152)", "avg(d200)", "avg(never)", "mean(si)",
    *(f"{name}({value})" for name in ("min", "max") for value in ["ti", "i", "l", "d52", "d384", "s", "dt", "ts", "tn", "bin", "never"]),
    "bool_and(b)", "bool_or(b)", "every(i > 0)", "some(b)", "any(i > 5)", "bit_and(i)", "bit_or(si)", "bit_xor(l)", "max(b)",
    "sum(i) FILTER (WHERE b)", "count(*) FILTER (WHERE i > 0)", "avg(d52) FILTER (WHERE h = 1)", "min(s) FILTER (WHERE s > 'a')", "count_if(b) FILTER (WHERE h > 1)",
    "count(i, s) FILTER (WHERE b)", "sum(i) RESPECT NULLS",
]  # fmt: skip
_WINDOWS = ["", "PARTITION BY gd", "ORDER BY h, id", "PARTITION BY h ORDER BY s, id ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"]  # fmt: skip


def _aggregates() -> list[str]:
    return [f"{call} OVER ({window})" for window, call in itertools.product(_WINDOWS, _AGGREGATES)]


CALLS: dict[str, list[str]] = {
    "ranks": _ranking(),
    "frames": _frames(),
    "peers": _peers(),
    "distances": _distances(),
    "shifts": _shifts(),
    "positions": _positions(),
    "aggregates": _aggregates(),
    "counters": _counters(),
}

ROUNDED: list[str] = [
    f"{call} OVER ({window})"
    for window in (*_WINDOWS, "ORDER BY d RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING", "PARTITION BY h ORDER BY gd")
    for call in ("sum(d)", "sum(f)", "avg(d)", "avg(f)", "sum(d) FILTER (WHERE b)", "avg(l % 1000)")
]  # fmt: skip
"""Sums of floats: equal to rounding."""

ON_SPARK: list[str] = [
    "min(d) OVER (PARTITION BY h)", "max(f) OVER (ORDER BY id)", "stddev_samp(i) OVER (PARTITION BY h)", "collect_list(s) OVER (PARTITION BY h ORDER BY id)",
    "max_by(s, id) OVER (ORDER BY id ROWS 3 PRECEDING)", "median(i) OVER (PARTITION BY h)", "approx_count_distinct(s) OVER (PARTITION BY g)",
    "first(i) FILTER (WHERE b) OVER (PARTITION BY h ORDER BY id)", "last(i) FILTER (WHERE b) IGNORE NULLS OVER (PARTITION BY h ORDER BY id)", "sum(i) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 PRECEDING)",
    "sum(ti) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW)", "count(*) OVER (ORDER BY ts RANGE INTERVAL 1 MONTH PRECEDING)",
    "lag(s, 0) IGNORE NULLS OVER (ORDER BY id)", "try_sum(i) OVER (PARTITION BY h)",
    "count(*) OVER (ORDER BY dt RANGE 2147483647 PRECEDING)", "counter_diff(abs(gd)) OVER (PARTITION BY h ORDER BY id)", "counter_diff(h, TIMESTAMP '2024-01-01 00:00:00') OVER (PARTITION BY g ORDER BY id)",
]  # fmt: skip
"""Staged, computed by Spark."""

_KB = "SELECT id, v, row_number() OVER (PARTITION BY kb ORDER BY v DESC, id) AS rn, rank() OVER (PARTITION BY kb ORDER BY v DESC, id) AS rk FROM x"
_TIES = "SELECT id, v, rank() OVER (PARTITION BY kb ORDER BY v) AS rk, dense_rank() OVER (PARTITION BY kb ORDER BY v) AS dr FROM x"  # fmt: skip

QUERIES: dict[str, str] = {
    # ---- names
    "rank is named": "SELECT rank() OVER (PARTITION BY k, v + 1 ORDER BY id DESC, abs(v)) FROM x",
    "row_number is named": "SELECT id, ROW_NUMBER() OVER (PARTITION BY K ORDER BY id) FROM x",
    "aggregate is named": "SELECT id, Sum(V) OVER (PARTITION BY k), count(*) OVER (), AVG(v) OVER (ORDER BY id ROWS 2 PRECEDING) FROM x",
    "shift is named": "SELECT id, lag(v) OVER (ORDER BY id), lead(v, 2) OVER (ORDER BY id), lag(v, -1, 0) OVER (ORDER BY id) FROM x",
    "ntile is named": "SELECT id, ntile() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id DESC NULLS FIRST), percent_rank() OVER (ORDER BY id) FROM x",
    "position is named": "SELECT id, first(v) IGNORE NULLS OVER (ORDER BY id), last_value(v, true) OVER (ORDER BY id), nth_value(v, 2) IGNORE NULLS OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) FROM x",
    "filter is named": "SELECT id, sum(v) FILTER (WHERE v > 1) OVER (PARTITION BY k) FROM x",
    "interval frame is named": "SELECT id, count(*) OVER (ORDER BY kt RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING) FROM x",
    "arithmetic is named": "SELECT id, 1 + sum(v) OVER (PARTITION BY k) FROM x",
    # ---- where windows stand
    "in an expression": "SELECT id, v - avg(v) OVER (PARTITION BY k) AS a, coalesce(lag(v) OVER (ORDER BY id), 0) * 2 AS b FROM x",
    "in CASE": "SELECT id, CASE WHEN row_number() OVER (PARTITION BY k ORDER BY id) = 1 THEN 'first' WHEN v > 0 THEN 'p' ELSE 'n' END AS c FROM x",
    "in CASE's branches": "SELECT id, CASE WHEN v > 0 THEN sum(v) OVER (PARTITION BY k) ELSE max(v) OVER (PARTITION BY ks) END AS c FROM x",
    "share of a total": "SELECT id, w / sum(w) OVER (PARTITION BY k) AS share FROM x WHERE w > 0",
    "twice the same call": "SELECT id, rank() OVER (ORDER BY v) AS a, rank() OVER (ORDER BY v) + 1 AS b FROM x",
    "alias of a window in a later item": "SELECT id, rank() OVER (ORDER BY v) AS r, r + 1 AS s FROM x",
    "order by alias": "SELECT id, sum(v) OVER (PARTITION BY k) AS s FROM x ORDER BY s DESC NULLS LAST, id",
    "order by position": "SELECT row_number() OVER (ORDER BY v, id), id FROM x ORDER BY 1",
    "order by expression of alias": "SELECT id, rank() OVER (ORDER BY v, id) AS r FROM x ORDER BY -r LIMIT 5",
    "distinct": "SELECT DISTINCT k, count(*) OVER (PARTITION BY k) AS n FROM x",
    "distinct ordered": "SELECT DISTINCT ks, dense_rank() OVER (ORDER BY ks) AS r FROM x ORDER BY r",
    "derived table": "SELECT r, count(*) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY v) AS r FROM x) GROUP BY r",
    "cte used twice": "WITH w AS (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM x) SELECT a.id, b.id FROM w a JOIN w b ON a.k = b.k AND a.r = b.r + 1",
    "window of a window": "SELECT id, sum(r) OVER (PARTITION BY r ORDER BY id) AS s FROM (SELECT id, dense_rank() OVER (ORDER BY v) AS r FROM x)",
    "nested windows": "SELECT id, sum(sum(v) OVER (PARTITION BY k)) OVER (PARTITION BY ks) AS s FROM x",
    "nested avg": "SELECT id, max(avg(v) OVER (PARTITION BY k)  > 0.5) OVER () AS s, avg(avg(w) OVER (PARTITION BY k)) OVER (PARTITION BY kb) AS t FROM x",
    "partition by a window": "SELECT id, count(*) OVER (PARTITION BY rank() OVER (ORDER BY v)) AS n FROM x",
    "order by a window": "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY row_number() OVER (ORDER BY id DESC)) AS s FROM x",
    "order by an avg window": "SELECT id, rank() OVER (ORDER BY avg(v) OVER (PARTITION BY k)) AS s FROM x",
    "over a join": "SELECT x.id, y.id, row_number() OVER (PARTITION BY x.id ORDER BY y.id) AS r FROM x JOIN y ON x.k = y.k",
    "over an outer join": "SELECT x.id, count(y.id) OVER (PARTITION BY x.k) AS n FROM x LEFT JOIN y ON x.id = y.id - 200",
    "joined by a rank": "SELECT x.id, q.r FROM x LEFT JOIN (SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM y) q ON x.v = q.r",
    "over a union": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM (SELECT id, k FROM x UNION ALL SELECT id, k FROM y)",
    "union of windows": "SELECT id, rank() OVER (ORDER BY id) AS r FROM x UNION ALL SELECT id, rank() OVER (ORDER BY id DESC) FROM y",
    "over no rows": "SELECT id, sum(v) OVER (PARTITION BY k) AS s, row_number() OVER (ORDER BY id) AS r FROM z",
    "over filtered rows": "SELECT id, count(*) OVER (PARTITION BY k) AS n FROM x WHERE v > 0",
    "over a limit": "SELECT id, count(*) OVER () AS n FROM (SELECT id FROM x ORDER BY id LIMIT 7)",
    "limited": "SELECT id, row_number() OVER (ORDER BY id DESC) AS r FROM x ORDER BY id LIMIT 4",
    "without FROM": "SELECT row_number() OVER (ORDER BY 1) AS r, count(*) OVER () AS n",
    "star": "SELECT *, count(*) OVER (PARTITION BY k) AS n FROM x",
    "count of an unread window": "SELECT count(*) FROM (SELECT id, rank() OVER (ORDER BY v) AS r FROM x)",
    "in a scalar subquery": "SELECT id FROM x WHERE v >= (SELECT max(r) FROM (SELECT ntile(4) OVER (ORDER BY id) AS r FROM y))",
    "in a correlated subquery": "SELECT id FROM x WHERE v >= (SELECT max(r) FROM (SELECT rank() OVER (ORDER BY y.v, y.id) AS r FROM y WHERE y.k = x.k) q)",
    "in EXISTS": "SELECT id FROM x WHERE EXISTS (SELECT 1 FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM y) q WHERE q.k = x.k AND q.r = 2)",
    "in IN": "SELECT id FROM x WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM x) WHERE r = 1)",
    "scalar subquery in a window": "SELECT id, sum(v + (SELECT max(v) FROM y)) OVER (PARTITION BY k) AS s FROM x",
    "literal partition": "SELECT id, count(*) OVER (PARTITION BY 1, 'a') AS n, rank() OVER (ORDER BY 1) AS r FROM x",
    "distribute by, sort by": "SELECT id, sum(v) OVER (DISTRIBUTE BY k SORT BY id) AS s FROM x",
    # ---- groups
    "over groups": "SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v), k) AS r FROM x GROUP BY k",
    "sum of a sum": "SELECT k, ks, sum(sum(v)) OVER (PARTITION BY ks) AS s, sum(v) AS t FROM x GROUP BY k, ks",
    "sum of a count": "SELECT k, count(*) AS n, sum(count(*)) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) AS running FROM x GROUP BY k",
    "share of groups": "SELECT k, sum(w) * 100 / sum(sum(w)) OVER () AS share FROM x GROUP BY k",
    "avg of a sum": "SELECT ks, k, avg(sum(w)) OVER (PARTITION BY ks) AS a FROM x GROUP BY ks, k",
    "group key expression": "SELECT k + 1 AS z, rank() OVER (ORDER BY k + 1) AS r FROM x GROUP BY k + 1",
    "groups with HAVING": "SELECT k, dense_rank() OVER (ORDER BY count(*) DESC) AS r FROM x GROUP BY k HAVING count(*) > 2",
    "group by all": "SELECT k, count(*) OVER () AS n FROM x GROUP BY ALL",
    "rollup": "SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v), k) AS r FROM x GROUP BY ROLLUP (k)",
    "total of a total": "SELECT sum(sum(v)) OVER () AS s, count(*) AS n FROM x",
    "one group": "SELECT sum(v) AS s, row_number() OVER (ORDER BY sum(v)) AS r FROM x",
    "ordered groups": "SELECT k, sum(v) AS s, sum(sum(v)) OVER (ORDER BY k) AS r FROM x GROUP BY k ORDER BY r, k",
    # ---- named windows
    "named window": "SELECT id, sum(v) OVER w AS s, count(*) OVER w AS n FROM x WINDOW w AS (PARTITION BY k ORDER BY id)",
    "named window in parentheses": "SELECT id, sum(v) OVER (w) AS s FROM x WINDOW w AS (PARTITION BY k)",
    "window named after another": "SELECT id, sum(v) OVER w2 AS s FROM x WINDOW w2 AS w, w AS (PARTITION BY k)",
    "several named windows": "SELECT id, rank() OVER a AS p, rank() OVER b AS q FROM x WINDOW a AS (PARTITION BY k ORDER BY v), b AS (PARTITION BY ks ORDER BY v DESC)",
    "named window with a frame": "SELECT id, sum(v) OVER w AS s FROM x WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "named window over groups": "SELECT k, sum(count(*)) OVER w AS s FROM x GROUP BY k, v WINDOW w AS (PARTITION BY k)",
    # ---- QUALIFY
    "qualify by a call": "SELECT id, k FROM x QUALIFY row_number() OVER (PARTITION BY k ORDER BY id) = 1",
    "qualify by an alias": "SELECT id, rank() OVER (PARTITION BY k ORDER BY v, id) AS r FROM x QUALIFY r <= 2",
    "qualify with WHERE": "SELECT id FROM x WHERE v > 0 QUALIFY count(*) OVER (PARTITION BY k) > 1 AND id % 2 = 0",
    "qualify by a value": "SELECT id, sum(v) OVER (PARTITION BY k) AS s FROM x QUALIFY k = 3",
    "qualify over groups": "SELECT k, sum(v) AS s, rank() OVER (ORDER BY sum(v), k) AS r FROM x GROUP BY k QUALIFY r <= 3",
    "qualify with distinct": "SELECT DISTINCT k, count(*) OVER () AS c FROM x QUALIFY row_number() OVER (ORDER BY id) < 12 ORDER BY k LIMIT 3",
    "qualify by an alias in a window": "SELECT id, v + 1 AS z FROM x QUALIFY row_number() OVER (ORDER BY z, id) = 5",
    "qualify with a star": "SELECT * FROM x QUALIFY row_number() OVER (ORDER BY id DESC) <= 3",
    # ---- limits below the exchange
    "first rows of each": f"SELECT * FROM ({_KB}) WHERE rn <= 3",
    "first row of each": f"SELECT id FROM ({_KB}) WHERE rn = 1",
    "less than": f"SELECT id FROM ({_KB}) WHERE rk < 3",
    "mirrored": f"SELECT id FROM ({_KB}) WHERE 2 >= rk",
    "no rank is that small": f"SELECT id FROM ({_KB}) WHERE rn <= 0",
    "second row": f"SELECT id, rn FROM ({_KB}) WHERE rn = 2",
    "rank with ties": f"SELECT * FROM ({_TIES}) WHERE rk <= 4",
    "dense rank with ties": f"SELECT * FROM ({_TIES}) WHERE dr <= 2",
    "two ranks": f"SELECT * FROM ({_TIES}) WHERE dr <= 3 AND rk <= 2",
    "rank and another filter": f"SELECT * FROM ({_TIES}) WHERE rk <= 4 AND v <> 0",
    "rank and more": f"SELECT * FROM ({_TIES}) WHERE rk <= 4 OR v > 3",
    "rank beside a sum": "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY kb ORDER BY v) AS r, sum(v) OVER (PARTITION BY kb) AS s FROM x) WHERE r <= 2",
    "rank beside another order": "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY kb ORDER BY v) AS r, rank() OVER (PARTITION BY kb ORDER BY id) AS q FROM x) WHERE r <= 2",
    "global first rows": "SELECT * FROM (SELECT id, v, row_number() OVER (ORDER BY v DESC, id) AS r FROM x) WHERE r <= 5",
    "global rank": "SELECT * FROM (SELECT id, v, rank() OVER (ORDER BY v DESC) AS r FROM x) WHERE r <= 5 ORDER BY id",
    "rank above another window": "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY kb ORDER BY v) AS r, sum(v) OVER (PARTITION BY k) AS s FROM x) WHERE r <= 2",
    "rank of a join": "SELECT * FROM (SELECT x.id, y.id AS j, row_number() OVER (PARTITION BY x.kb ORDER BY y.id, x.id) AS r FROM x JOIN y ON x.k = y.k) WHERE r <= 3",
    "percent rank is no rank": "SELECT id FROM (SELECT id, percent_rank() OVER (PARTITION BY kb ORDER BY v) AS p FROM x) WHERE p <= 1",
    # ---- filters
    "filter of a partition key": "SELECT * FROM (SELECT id, k, sum(v) OVER (PARTITION BY k) AS s FROM x) WHERE k > 3",
    # Not `kd = 0`, by which Spark's Parquet reader loses rows with -0.0.
    "filter of a float key": "SELECT * FROM (SELECT id, kd, count(*) OVER (PARTITION BY kd) AS n FROM x) WHERE kd + 0.0D = 0",
    "filter of another column": "SELECT * FROM (SELECT id, k, v, sum(v) OVER (PARTITION BY k) AS s FROM x) WHERE v > 0 AND k < 9",
    "filter of a computed key": "SELECT * FROM (SELECT id, k % 4 AS z, sum(v) OVER (PARTITION BY k % 4) AS s FROM x) WHERE z > 1",
    "filter of all": "SELECT * FROM (SELECT id, sum(v) OVER () AS s FROM x) WHERE id > 120",
    # ---- several exchanges
    "the same keys in another order": "SELECT id, sum(v) OVER (PARTITION BY k, ks) AS a, count(*) OVER (PARTITION BY ks, k ORDER BY id) AS b FROM x",
    "keys within keys": "SELECT id, sum(v) OVER (PARTITION BY k, ks) AS a, max(v) OVER (PARTITION BY k) AS b, count(*) OVER () AS c FROM x",
    "unlike keys": "SELECT id, sum(v) OVER (PARTITION BY k) AS a, max(v) OVER (PARTITION BY ks) AS b, min(v) OVER (PARTITION BY kd) AS c FROM x",
    "computed keys": "SELECT id, sum(v) OVER (PARTITION BY k % 3) AS a, max(v) OVER (PARTITION BY k % 3, upper(ks)) AS b FROM x",
    "a grouped window": "SELECT k, max(n) FROM (SELECT k, count(*) OVER (PARTITION BY k) AS n FROM x) GROUP BY k",
    "window after a grouping": "SELECT k, s, rank() OVER (PARTITION BY k ORDER BY s, ks) AS r FROM (SELECT k, ks, sum(v) AS s FROM x GROUP BY k, ks)",
    "window after a join on its key": "SELECT x.id, y.id, count(*) OVER (PARTITION BY x.k) AS n FROM x JOIN y ON x.k = y.k",
    "join after a window on its key": "SELECT a.id, b.id, a.n FROM (SELECT id, k, count(*) OVER (PARTITION BY k) AS n FROM x) a JOIN y b ON a.k = b.k",
    "window in a sort": "SELECT id, r FROM (SELECT id, rank() OVER (PARTITION BY k ORDER BY v, id) AS r FROM x) ORDER BY r, id LIMIT 6",
    "many rows": "SELECT id, i, sum(i) OVER (PARTITION BY k ORDER BY id) AS s, row_number() OVER (PARTITION BY n ORDER BY id) AS r FROM e",
    "edges in order": "SELECT id, rank() OVER (ORDER BY d) AS a, rank() OVER (ORDER BY f DESC) AS b, rank() OVER (ORDER BY s) AS c, rank() OVER (ORDER BY l, m) AS d, dense_rank() OVER (ORDER BY ts DESC) AS e, dense_rank() OVER (ORDER BY d384) AS f FROM e",
    "edges as keys": "SELECT id, count(*) OVER (PARTITION BY d) AS a, count(*) OVER (PARTITION BY f) AS b, count(*) OVER (PARTITION BY s) AS c, count(*) OVER (PARTITION BY ts, b) AS d, count(*) OVER (PARTITION BY d384) AS e, count(*) OVER (PARTITION BY bin) AS f FROM e",
    "edges in value frames": "SELECT id, count(*) OVER (ORDER BY d RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a, count(*) OVER (ORDER BY f DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS b, count(*) OVER (ORDER BY dt RANGE BETWEEN 31 PRECEDING AND CURRENT ROW) AS c, count(*) OVER (ORDER BY tu RANGE INTERVAL 2 DAYS PRECEDING) AS d FROM e",
    "smallest frame": "SELECT id, sum(l) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW) AS a, min(l) OVER (ORDER BY id ROWS 1 PRECEDING) AS b FROM e",
}  # fmt: skip
"""Whole queries that run natively."""

SPARK_QUERIES: dict[str, str] = {
    "sums that overflow": "SELECT id, sum(l) OVER (ORDER BY id) FROM e",
    "frames that overflow": "SELECT id, count(*) OVER (ORDER BY i RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING) AS n FROM e",
    "counters below 0": "SELECT id, counter_diff(v) OVER (ORDER BY id) AS d FROM x",
    "decimals that overflow": "SELECT id, sum(d384) OVER (ORDER BY id) AS s FROM e",
}
"""Spark raises, and so do we."""

ERRORS: dict[str, tuple[str, str]] = {
    "in WHERE": ("SELECT id FROM x WHERE rank() OVER (ORDER BY v) = 1", "is only allowed in the select list"),
    "in HAVING": ("SELECT k FROM x GROUP BY k HAVING rank() OVER (ORDER BY k) = 1", "is only allowed in the select list"),
    "its alias in HAVING": ("SELECT k, rank() OVER (ORDER BY k) AS r FROM x GROUP BY k HAVING r = 1", "in HAVING"),
    "in GROUP BY": ("SELECT count(*) FROM x GROUP BY rank() OVER (ORDER BY k)", "is only allowed in the select list"),
    "its position in GROUP BY": ("SELECT rank() OVER (ORDER BY k) AS r FROM x GROUP BY 1", "in GROUP BY"),
    "in ORDER BY": ("SELECT id FROM x ORDER BY rank() OVER (ORDER BY v)", "is only allowed in the select list"),
    "in ON": ("SELECT x.id FROM x JOIN y ON rank() OVER (ORDER BY x.v) = y.v", "is only allowed in the select list"),
    "in an aggregate": ("SELECT sum(rank() OVER (ORDER BY v)) FROM x", "inside an aggregate"),
    "in FILTER": ("SELECT max(k) FILTER (WHERE rank() OVER (ORDER BY k) = 1) FROM x", "inside an aggregate"),
    "rank without an order": ("SELECT rank() OVER (PARTITION BY k) FROM x", "needs ORDER BY"),
    "row_number without an order": ("SELECT row_number() OVER () FROM x", "needs ORDER BY"),
    "lag without an order": ("SELECT lag(v) OVER (PARTITION BY k) FROM x", "needs ORDER BY"),
    "nth_value without an order": ("SELECT nth_value(v, 1) OVER () FROM x", "needs ORDER BY"),
    "without OVER": ("SELECT row_number() FROM x", "needs OVER"),
    "distinct": ("SELECT count(DISTINCT v) OVER (PARTITION BY k) FROM x", "DISTINCT is not allowed"),
    "frame of a rank": ("SELECT rank() OVER (ORDER BY v ROWS 1 PRECEDING) FROM x", "has a fixed frame"),
    "frame of lag": ("SELECT lag(v) OVER (ORDER BY v ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM x", "takes no frame"),
    "filter of a rank": ("SELECT rank() FILTER (WHERE v > 1) OVER (ORDER BY v) FROM x", "does not take FILTER"),
    "nulls of a sum": ("SELECT sum(v) IGNORE NULLS OVER (ORDER BY v) FROM x", "does not take IGNORE NULLS"),
    "nulls of row_number": ("SELECT row_number() IGNORE NULLS OVER (ORDER BY v) FROM x", "does not take IGNORE NULLS"),
    "groups": ("SELECT sum(v) OVER (ORDER BY v GROUPS 1 PRECEDING) FROM x", "not Spark SQL"),
    "frame backwards": ("SELECT sum(v) OVER (ORDER BY v ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) FROM x", "ends before it starts"),
    "frame from its end": ("SELECT sum(v) OVER (ORDER BY v ROWS UNBOUNDED FOLLOWING) FROM x", "ends before it starts"),
    "frame of a column": ("SELECT sum(v) OVER (ORDER BY v ROWS k PRECEDING) FROM x", "must be a constant"),
    "frame of a decimal": ("SELECT sum(v) OVER (ORDER BY v ROWS 1.5 PRECEDING) FROM x", "counts rows by an int"),
    "frame of a bigint": ("SELECT sum(v) OVER (ORDER BY v ROWS 1L PRECEDING) FROM x", "counts rows by an int"),
    "range of two keys": ("SELECT sum(v) OVER (ORDER BY k, v RANGE 1 PRECEDING) FROM x", "exactly one sort key"),
    "range without an order": ("SELECT sum(v) OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM x", "needs ORDER BY"),
    "range around text": ("SELECT sum(v) OVER (ORDER BY ks RANGE 1 PRECEDING) FROM x", "around a string"),
    "hours around a date": ("SELECT sum(v) OVER (ORDER BY kt RANGE INTERVAL 1 HOUR PRECEDING) FROM x", "around a date"),
    "bounds of two types": ("SELECT sum(v) OVER (ORDER BY kt RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 MONTH FOLLOWING) FROM x", "the same type"),
    "unknown window": ("SELECT sum(v) OVER w FROM x", "not in the WINDOW clause"),
    "window of another case": ("SELECT sum(v) OVER W FROM x WINDOW w AS (ORDER BY v)", "not in the WINDOW clause"),
    "window defined twice": ("SELECT sum(v) OVER w FROM x WINDOW w AS (ORDER BY v), w AS (ORDER BY k)", "defined twice"),
    "reference to a reference": ("SELECT sum(v) OVER w FROM x WINDOW a AS (ORDER BY v), b AS a, w AS b", "another reference"),
    "buckets": ("SELECT ntile(0) OVER (ORDER BY v) FROM x", "must be positive"),
    "buckets of a column": ("SELECT ntile(k) OVER (ORDER BY v) FROM x", "must be a constant"),
    "position 0": ("SELECT nth_value(v, 0) OVER (ORDER BY v) FROM x", "must be positive"),
    "offset of a column": ("SELECT lag(v, k) OVER (ORDER BY v) FROM x", "must be a constant"),
    "offset of a bigint": ("SELECT lag(v, 1L) OVER (ORDER BY v) FROM x", "must be a constant"),
    "too many arguments": ("SELECT row_number(v) OVER (ORDER BY v) FROM x", "takes"),
    "alias in a window": ("SELECT v + 1 AS z, rank() OVER (ORDER BY z) FROM x", "not found"),
    "qualify without a window": ("SELECT id FROM x QUALIFY k = 1", "needs a window function"),
}  # fmt: skip
"""Refused by Spark and by the planner, with these words."""
