"""Which expressions prove what Spark writes as text, over the columns of table `e`.

They are floats, intervals, arrays, maps and structs as strings and as JSON.
"""

from __future__ import annotations

WRITTEN: list[str] = [
    "CAST(f AS STRING)", "CAST(d AS STRING)", "concat(f, 'x')", "CAST(array(f, f2) AS STRING)", "CAST(struct(i, s, d, NULL) AS STRING)", "CAST(map(i, f) AS STRING)", "CAST(struct(dt, ts, tn, bin, d52, l) AS STRING)", "CAST(map('a', array(s, t), '{', array()) AS STRING)", "CAST(struct('it''s {0} {' AS a, s) AS STRING)", "CAST(ts - tu AS STRING)", "CAST((ts - tu) AS STRING) || 'x'", "CAST(CAST(j AS INTERVAL MONTH) AS STRING)", "CAST(CAST(k AS INTERVAL YEAR) AS STRING)", "CAST(CAST(j AS INTERVAL SECOND) AS STRING)", "CAST(CAST(CAST(k AS INTERVAL DAY) AS INTERVAL DAY TO HOUR) AS STRING)", "CAST(CAST(n AS INTERVAL HOUR) AS STRING)", "CAST(make_dt_interval(k, n, i % 100, d152 % 100) AS STRING)", "CAST(make_ym_interval(n, k) AS STRING)", "CAST(array(make_dt_interval(k, n)) AS STRING)", "CAST(array() AS STRING)", "CAST(array(NULL) AS STRING)", "CAST(map(s, 1) AS STRING)", "concat(s, array(i))",
    "to_json(struct(i, s, d, NULL))", "to_json(struct(ti, si, l, b, d52, d152, d104, e152, d200, d40))", "to_json(struct(dt, ts, tn, bin))", "to_json(struct(f, f2))", "to_json(map(s, i))", "to_json(map(i, s))", "to_json(array(s, t, NULL))", "to_json(array(struct(s AS `a\"b`, array(i, n) AS `q\\\\`), NULL))", "to_json(struct(ts - tu AS x, make_ym_interval(n, k) AS y))", "to_json(array(dt, du))", "to_json(struct(array() AS e, map() AS m))", "to_json(map('a', map(s, array(d))))", "to_json(struct(concat(chr(k), chr(n), chr(1), chr(31), chr(127), chr(8), chr(12), '/', '\\\\', '\\u2028') AS s))", "to_json(transform(sequence(0, 31), x -> concat('<', chr(x), '>')))", "to_json(struct(d384))", "to_json(map(dt, 1))", "to_json(struct(i), map('ignoreNullFields', 'false'))",
]  # fmt: skip
