"""Which expressions prove the registry: by name of the entry, over the columns of the edge table.

`NATIVE[name]` must run on DuckDB and equal Spark. `REFUSED[name]` must not run on DuckDB: each is a
known difference. `EITHER` is made by rule, for all combinations of types; where the planner calls
it native it must be equal.
"""

from __future__ import annotations

import itertools

from tests.differential import cases_times
from tests.differential.cases_scalars import NATIVE_SCALARS, REFUSED_SCALARS
from tests.differential.cases_written import WRITTEN

NATIVE: dict[str, list[str]] = {
    "add": ["ti + 2", "si + 1", "i + j", "l + m", "i + l", "d + d2", "f + d", "f + f2", "f + 1", "i + 1.5D", "d52 + d152", "d152 + 1", "d152 + 0.05", "1 + d104", "i + d52", "NULL + i", "d + 0.1", "f + 0.1", "ti + ti", "d200 + d40", "d384 + d384", "d384 + d52", "d200 + d104 * d384", "CAST(d200 AS DECIMAL(38,0)) + d52"],
    "subtract": ["i - j", "ti - 100", "l - 1", "d - d2", "f - f2", "d152 - e152", "1 - d52", "1.00 - d152", "i - d104", "- l - m", "d200 - d104 * d384", "CAST(d40 AS DECIMAL(38,30)) - CAST(d200 AS DECIMAL(38,2))"],
    "multiply": ["i * j", "ti * 2", "si * si", "l * 3", "d * d2", "f * 0.1", "d152 * e152", "d52 * d52", "d152 * (1 - d52)", "d104 * 100", "i * d52", "d40 * d40", "d152 * (1 - d52) * (1 + d52)", "d384 * d152", "d384 * d384", "d384 * d104", "d384 * 0.0001", "CAST(d52 AS DECIMAL(38,18)) * CAST(d104 AS DECIMAL(38,18))"],
    "divide": ["i / j", "i / 2", "l / m", "d / d2", "d / 0.5D", "f / f2", "f / 2", "ti / si", "1 / i", "d52 / d40", "d152 / 7", "d104 / d52", "100 / d52", "0.2 * d52 / 7", "d384 / d384", "d384 / d52", "1.0 / 3.0", "d152 / 7.0", "d384 / CAST(d104 AS DECIMAL(38,18))", "CAST(d104 AS DECIMAL(38,30)) / d40", "CAST(d104 AS DECIMAL(38,30)) / CAST(d384 AS DECIMAL(38,0))"],
    "div": ["i div j", "l div 7", "l div m", "ti div 3", "(-7) div 2", "i div -1", "d384 div d200", "d152 div d52", "d52 div CAST(d104 AS DECIMAL(38,30))"],
    "mod": ["i % j", "l % m", "ti % 3", "si % -7", "i % 0", "l % -1", "mod(i, 10)", "i % CAST(7 AS BIGINT)", "d152 % d52", "CAST(d200 AS DECIMAL(38,0)) % d384", "d384 % CAST(d52 AS DECIMAL(38,30))"],
    "negate": ["-i", "-ti", "-l", "-d", "-f", "-d152", "-(-d52)", "-d384", "-(-d384)"],
    "abs": ["abs(i)", "abs(ti)", "abs(l)", "abs(d)", "abs(f)", "abs(d152)", "abs(d200)", "abs(d384)", "abs(-d384)"],
    "eq": ["i = j", "ti = 3", "i = 3L", "i = 1.0", "d = d2", "f = 0.1", "d = i", "d52 = d152", "d152 = 1", "d52 = i", "d52 = d", "s = t", "s = 'abc'", "dt = du", "dt = '2024-02-29'", "dt = DATE'2024-02-29'", "ts = tu", "b = b2", "b = true", "tn = tn", "bin = bin", "i = NULL", "dt = ts"],
    "ne": ["i <> j", "s <> t", "d <> d2", "NOT i = 3", "s != ''", "b <> b2"],
    "lt": ["i < j", "s < t", "d < d2", "f < d", "dt < du", "dt < '2000-01-01'", "d52 < 1.234", "ts < tu", "b < b2", "d200 < l"],
    "le": ["i <= j", "s <= 'b'", "d <= d2", "d104 <= d52", "tn <= tn"],
    "gt": ["i > j", "s > t", "d > d2", "i > 1.5", "d > 1e7", "l > i", "dt > ts"],
    "ge": ["i >= j", "s >= t", "d >= d2", "f >= f2", "du >= '1970-01-01'", "i BETWEEN -3 AND j", "dt BETWEEN '1900-01-01' AND du", "s BETWEEN 'a' AND t"],
    "eq_null_safe": ["i <=> j", "s <=> t", "d <=> d2", "NULL <=> i", "d152 <=> 1", "b IS TRUE", "b IS FALSE"],
    "and": ["b AND b2", "b AND i > 0", "NULL AND b", "b AND b2 AND i > 0"],
    "or": ["b OR b2", "i > 0 OR j > 0", "b OR NULL"],
    "not": ["NOT b", "NOT (b AND b2)", "NOT (i > j)", "b IS NOT TRUE", "NOT (d > d2)", "NOT (d = d2)"],
    "is_null": ["i IS NULL", "s IS NULL", "d IS NULL", "(i + NULL) IS NULL", "bin IS NULL"],
    "is_not_null": ["i IS NOT NULL", "NOT (dt IS NULL)", "s IS NOT NULL"],
    "in": ["i IN (1, 2, 3)", "i IN (1, NULL)", "i NOT IN (1, NULL)", "i NOT IN (1, 2)", "s IN ('a', 'straße', '')", "d IN (0, 1.5)", "d IN (d2, 1)", "dt IN ('2024-02-29', DATE'1970-01-01')", "d52 IN (1, 0.05)", "i IN (j, k, n)", "l IN (1, 2)", "i IN (1L, 2)", "ti IN (1, 300)"],
    "case": ["CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' ELSE '0' END", "CASE WHEN b THEN i END", "CASE i WHEN 1 THEN 'x' WHEN NULL THEN 'y' END", "CASE WHEN b THEN ti ELSE l END", "CASE WHEN b THEN d52 ELSE d104 END", "CASE WHEN b THEN d152 ELSE 0 END", "CASE WHEN b THEN i ELSE 1.5D END", "IF(b, i, j)", "CASE WHEN j <> 0 THEN i / j ELSE 0 END", "CASE WHEN b THEN dt ELSE ts END", "IF(b, NULL, i)", "CASE WHEN b THEN 1 ELSE 0 END", "CASE WHEN b THEN d ELSE d2 END", "CASE WHEN b THEN f ELSE d END", "CASE WHEN b THEN 1 ELSE 2.50 END"],
    "coalesce": ["coalesce(i, j)", "coalesce(ti, 1)", "coalesce(i, 0)", "coalesce(s, 'none')", "coalesce(d52, d104)", "coalesce(NULL, i)", "nvl(i, 5)", "ifnull(d, 0)", "coalesce(i, l, 0)", "coalesce(d152, 0)", "coalesce(b, false)", "coalesce(dt, du)"],
    "nullif": ["nullif(i, j)", "nullif(i, 1)", "nullif(s, 'a')", "nullif(d52, 1)", "nullif(i, 3L)", "nullif(d, d2)", "nullif(ti, 300)", "nullif(i, 1.5)", "nullif(d52, 0)", "nullif(f, d)", "nullif(NULL, i)"],
    "greatest": ["greatest(i, j)", "greatest(ti, l, 5)", "greatest(s, t)", "greatest(dt, du)", "greatest(d52, d104)", "greatest(ts, tu)", "greatest(i, NULL)"],
    "least": ["least(i, j)", "least(d152, 5)", "least(s, t, 'b')", "least(dt, du)"],
    "like": ["s LIKE 'a%'", "s LIKE '%b%'", "s LIKE '_'", "s LIKE 'str_ße'", "s LIKE ''", "s LIKE '%'", "s NOT LIKE '%a'", "s LIKE 'a_b'", "s LIKE '%\n%'", "s LIKE 'line_'", "s LIKE '100%'", "s LIKE '%日%'", "s LIKE 'abc'", "s LIKE '%c%c'"],
    "contains": ["contains(s, 'b')", "contains(s, t)", "contains(s, '')", "contains(s, 'ß')"],
    "startswith": ["startswith(s, 'a')", "startswith(s, t)", "startswith(s, '')"],
    "endswith": ["endswith(s, 'c')", "endswith(s, t)", "endswith(s, '')"],
    "concat": ["s || t", "concat(s, '-', t)", "concat(s)", "concat(i, s)", "s || 'x' || NULL", "concat(dt, ti)"],
    "substring": ["substring(s, 1, 2)", "substring(s, 2)", "substring(s, 0, 2)", "substring(s, 3, -1)", "substr(s, 1, 1)", "substring(s FROM 2 FOR 3)", "substring(s, 2, n)", "substring(s, 100, 2)", "substring(s, 0)", "substring(s, 2, 2147483647)"],
    "length": ["length(s)", "char_length(s)", "length('日本')", "length(concat(s, t))"],
    "replace": ["replace(s, 'b', 'XX')", "replace(s, '', 'x')", "replace(s, 'a')", "replace(s, t, '')", "replace(s, 'ß', 'ss')"],
    "left": ["left(s, 2)", "left(s, 0)", "left(s, -1)", "left(s, k)", "left(s, n)"],
    "right": ["right(s, 2)", "right(s, 0)", "right(s, -1)", "right(s, k)", "right(s, n)"],
    "date_add": ["date_add(dt, 1)", "date_add(dt, k)", "dt + 3", "dt + INTERVAL 5 DAYS", "date_add(dt, -40000)", "dt + k", "date_add(ts, 1)"],
    "date_sub": ["date_sub(dt, 1)", "date_sub(dt, k)", "dt - 30", "dt - INTERVAL '90' DAY", "DATE'2000-01-01' - INTERVAL 1 DAY"],
    "datediff": ["datediff(dt, du)", "datediff(dt, DATE'1970-01-01')", "datediff(ts, dt)", "datediff(dt, '2024-02-29')"],
    "add_months": ["add_months(dt, 1)", "add_months(dt, n)", "add_months(dt, -12)", "dt + INTERVAL '1' YEAR", "dt - INTERVAL 3 MONTHS", "DATE'2024-01-31' + INTERVAL 1 MONTH", "add_months(dt, 25)"],
    "round": ["round(d152, 1)", "round(d104, 2)", "round(d52)", "round(d52, 5)", "round(d384, 3)", "round(d104, 0)", "round(d152 * d52, 2)", "round(CAST(d104 AS DECIMAL(38,18)), 3)", "round(d152, -19)"],
    "ceil": ["ceil(d152)", "ceil(d104)", "ceil(d384)", "ceiling(d52)", "ceil(d384, 2)", "ceil(CAST(d104 AS DECIMAL(38,18)), 3)"],
    "floor": ["floor(d152)", "floor(d104)", "floor(d384)", "floor(d384, 2)"],
}  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "add": ["CAST(d200 AS DECIMAL(38,0)) + CAST(0.1 AS DECIMAL(38,38))"],
    "divide": ["CAST(d200 AS DECIMAL(38,0)) / CAST(0.1 AS DECIMAL(38,38))"],
    "mod": ["CAST(d200 AS DECIMAL(38,0)) % CAST(0.1 AS DECIMAL(38,38))"],
    "round": ["round(f)", "round(d, -1)", "round(d384, -4)", "round(CAST(d52 AS DECIMAL(38,18)), -1)"],
    "ceil": ["ceil(CAST(d52 AS DECIMAL(38,18)), -1)"],
}  # fmt: skip

NATIVE["eq"] = [
    *NATIVE.get("eq", []),
    "i % 100 + 1 = 5",
    "(l % 10) * 3 = 4",
    "5 = ti % 5 - 1",
    "-(i % 100) = 5",
    "i + 1 = 5",
    "i * 3 = 4",
    "5 = 32767S * si",
    "-i = 5",
    "1 - l = 4",
    "-ti = 5",
]
NATIVE["lt"] = [
    *NATIVE.get("lt", []),
    "i % 100 + 1 < 5",
    "-(l % 100) < 5",
    "l + 1 < 5",
    "-l < 5",
    "ts - tu + INTERVAL '1' DAY < INTERVAL '2' DAY",
    "-(ts - tu) < INTERVAL '2' DAY",
]
NATIVE["nullif"] = [*NATIVE.get("nullif", []), "nullif(-ti, 5)", "nullif(i * 3, 4)"]

NATIVE |= {name: NATIVE.get(name, []) + cases for name, cases in NATIVE_SCALARS.items()}
REFUSED |= {name: REFUSED.get(name, []) + cases for name, cases in REFUSED_SCALARS.items()}

INTERNAL = {
    "average",
    "complete_in_task",
    "hll_code",
    "hll_estimate",
    "average_interval",
    "single_value",
    "multiply_narrow",
    "window_bound",
}
"""Entries that no SQL names; tests of the operators that use them prove them."""

TYPED = ["ti", "si", "i", "l", "d40", "d52", "d152", "d104", "d384", "d200", "f", "d", "2", "1.5", "0.05", "3L", "1.5D", "2.50BD"]  # fmt: skip
COMPARED = [*TYPED, "s", "'12'", "b", "dt", "ts", "tn", "NULL"]
BRANCHES = ["ti", "l", "d52", "d104", "d384", "f", "d", "1", "0.05", "1.5D", "s", "b", "dt", "ts", "tn", "NULL"]  # fmt: skip
CAST_SOURCES = ["ti", "si", "i", "l", "d40", "d52", "d152", "d104", "d384", "d200", "f", "d", "num", "s", "b", "dt", "ts", "tn", "bin", "NULL", "12", "1.5", "-0.05", "2.5D", "'7'", "'2024-02-29'", "'2024-02-29 10:11:12'", "true", "d152 * d52", "CAST(d52 AS DECIMAL(2,2))"]  # fmt: skip
CAST_TARGETS = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)", "DECIMAL(15,4)", "DECIMAL(38,6)", "DECIMAL(20,0)", "DECIMAL(2,2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY"]  # fmt: skip

EITHER: dict[str, list[str]] = {
    "arithmetic": [
        f"{a} {op} {b}" for op in "+-*/%" for a, b in itertools.product(TYPED, TYPED)
    ],
    "comparison": [
        f"{a} {op} {b}"
        for (a, b), op in zip(
            itertools.product(COMPARED, COMPARED), itertools.cycle(["=", "<", "<=>", ">=", "<>"])
        )
    ],
    "conditional": [
        template.format(a, b)
        for a, b in itertools.product(BRANCHES, BRANCHES)
        for template in ("coalesce({}, {})", "IF(b2, {}, {})", "nullif({}, {})")
    ],
    "extremes": [
        template.format(a, b)
        for a, b in itertools.combinations(BRANCHES, 2)
        for template in ("greatest({}, {})", "least({1}, {0})")
    ],
    "casts": [f"CAST({a} AS {t})" for a in CAST_SOURCES for t in CAST_TARGETS],
    "try_casts": [f"TRY_CAST({a} AS {t})" for a in ("i", "num", "d") for t in ("INT", "DATE", "DECIMAL(5,2)") if (a, t) not in (("i", "DATE"), ("d", "DATE"))],
    "literals": [
        "1", "-1", "2147483648", "-2147483648", "- 2147483648", "-(2147483648)", "-9223372036854775808", "-(9223372036854775808)", "- -2147483647", "-CAST(NULL AS DECIMAL(2))", "-CAST(NULL AS INT)", "1.50", "0.00", ".5", "1e3", "1.5e-7", "1.0E+2", "100000000000000000000", "12L", "5S", "7Y", "1.5F", "2.5D", "3BD", "1.25BD", "'it''s'", "'a\\'b'", "'back\\\\slash'", "'a\\nb'", "\"double\"", "r'raw\\n'", "''", "'%'", "'日本'", "true", "NULL", "DATE'2024-02-29'", "DATE '1-1-1'", "DATE'2024-1-5'", "TIMESTAMP'2024-02-29 10:11:12'", "TIMESTAMP'2024-02-29 10:11:12+02:00'", "TIMESTAMP_NTZ'2024-02-29 10:11:12.5'", "X'00FF'", "INTERVAL 1 DAY", "-0.0D", "-0.05", "0.10", "'tab\\tx'", "'u\\u00e9'", "'nul\\0x'",
    ],
    "bits_and_more": [
        "i & j", "i | j", "~i", "i ^ j", "shiftleft(i, 1)", "pmod(i, 3)", "sign(i)", "signum(d)", "isnan(d)", "nanvl(d, 0)", "nvl2(i, 1, 2)", "zeroifnull(i)", "nullifzero(i)", "try_divide(i, j)", "try_add(i, j)", "bround(d152, 1)", "hash(i)", "xxhash64(s)", "crc32(s)", "sha2(s, 256)", "factorial(k % 20)", "positive(i)", "e()", "pi()", "rint(d)", "cbrt(d)", "s LIKE '%\\\\%%' ESCAPE '/'", "s LIKE ANY ('a%', '%b')", "instr(s, 'b')", "locate('b', s)", "position('b' IN s)", "split(s, 'b')", "concat_ws('-', s, t)", "repeat(s, 2)", "translate(s, 'ab', 'xy')", "ascii(s)", "initcap(s)", "months_between(dt, du)", "next_day(dt, 'MON')", "unix_date(dt)", "make_date(2024, 2, 29)", "date_part('YEAR', dt)", "to_date(s)", "to_date('2024-02-29')", "date(ts)", "int(d52)", "string(i)", "dt - du", "ts - tu", "ts + INTERVAL 1 DAY", "ts + INTERVAL 1 HOUR", "dt + INTERVAL 1 HOUR", "i IS DISTINCT FROM j", "b XOR b2", "!b", "i == j", "s RLIKE 'a'", "(i, j) = (1, 2)", "struct(i, j).i", "array(i, j)[0]", "map('a', i)['a']", "typeof(i)", "i::BIGINT", "d52::INT", "dayname(dt)", "monthname(dt)", "EXTRACT(SECOND FROM ts)", "count_if(true) IS NULL", "s COLLATE UTF8_LCASE = t", "decode(i, 1, 'a', 'b')", "if(i > 0, s, t)", "date_add(dt, ti)", "date_add(dt, 1L)", "date_add('2024-02-29', 1)", "1 + dt", "dt + ti", "add_months(ts, 1)", "last_day('2024-02-29')", "trunc(ts, 'MM')", "trunc('2024-02-29', 'MM')", "datediff('2024-02-29', dt)", "year(s)", "date_diff(dt, du)", "dateadd(DAY, 1, dt)", "left(s, 1L)", "substring(bin, 1, 1)", "length(bin)", "length(i)", "left(i, 2)", "concat(bin, bin)", "concat(s, d)", "contains(bin, bin)", "abs(num)", "-num", "num + 1", "round(num)", "round(d52, k)", "round(NULL)", "abs(NULL)", "length(NULL)", "NULL / i", "NULL + dt", "greatest(1, 2.5, ti)", "least('a', s)", "coalesce(NULL, NULL)", "ceil(d152, 1)", "floor(-d52)", "mod(d52, 3)", "mod(7, i)", "i % 2.5", "i div d52", "l div 0", "ti div ti", "upper(num)", "bool(i)", "i AND b", "NOT i", "d200 + 1L", "d384 + 0", "d384 * 1", "d384 / 1", "sum(i) OVER ()", "cast(d152 as decimal(16,3)) / cast(d52 as decimal(6,1))",
    ],
}  # fmt: skip

EITHER["times"] = cases_times.OTHERS
EITHER["written"] = WRITTEN
for _family in (cases_times,):
    for _all, _own in ((NATIVE, _family.NATIVE), (REFUSED, _family.REFUSED)):
        for _name, _expressions in _own.items():
            _all[_name] = [*_all.get(_name, []), *_expressions]
