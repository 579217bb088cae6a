"""Tables of edge values as Parquet files, which both engines read.

Written by pyarrow with 64-bit microsecond timestamps, never by Spark, so that neither engine has a
say in what the values are. All random choices have fixed seeds.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.planner.catalog import ColumnStats, MappingCatalog, TableInfo, TableStats
from stagecoach.planner.types import Field, from_arrow
from tests.decimal_values import exact
from tests.differential.csv_rows import SCHEMA as CSV_SCHEMA
from tests.differential.csv_rows import csv_rows

UTC = dt.UTC
BITS = {"ti": 8, "si": 16, "i": 32, "j": 32, "l": 64, "m": 64}
DECIMALS = {"d52": (5, 2), "d152": (15, 2), "e152": (15, 2), "d104": (10, 4), "d384": (38, 4), "d200": (20, 0), "d40": (4, 0)}  # fmt: skip
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1.005, 0.1, 1e7, 1e-7, 1e300, 5e-324, 2.0**53 + 2, math.inf, -math.inf, math.nan]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 16777217.0, 3.4e38, 1e-45, math.inf, -math.inf, math.nan]
STRINGS = [
    "", "a", "A", "abc", "abcabc", "straße", "İstanbul", "Ünïcödé", "日本語", "a\nb", "line\n", " lead", "trail ",
    "tab\t", "it's", 'say "x"', "back\\slash", "100%", "under_score", "%", "_", "\\%", "12", " 12 ", "-7", "1.5", "NaN",
    "true", "2024-02-29", "e\u0301", "😀", "z\u0000z", "\u00a0nbsp\u00a0", "a.b.c", "{0}", "{type}", "$1", "NULL",
]  # fmt: skip
DATES = [
    dt.date(1, 1, 1), dt.date(1500, 2, 28), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1899, 12, 31), dt.date(1900, 2, 28),
    dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 31),
    dt.date(2024, 2, 29), dt.date(2024, 3, 31), dt.date(2024, 12, 30), dt.date(2021, 1, 3), dt.date(2020, 12, 31), dt.date(9999, 12, 31),
]  # fmt: skip
TIMES = [
    dt.datetime(1, 1, 1), dt.datetime(1582, 10, 4, 23, 59, 59, 999999), dt.datetime(1582, 10, 15), dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 10, 11, 12, 345678), dt.datetime(2024, 3, 10, 7, 30), dt.datetime(2024, 11, 3, 5, 30),
    dt.datetime(2024, 11, 3, 6, 30, 0, 1), dt.datetime(2000, 1, 1), dt.datetime(1999, 12, 31, 23, 59, 59), dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
]  # fmt: skip
# Few rows, so that a column often has one value, one value beside NULL, or only NULL in a row group:
# engines compute conditions from such statistics alone.
ROW_GROUPS = {"g": 7, "x": 4, "y": 4, "n": 3, "np": 3}


@dataclass(frozen=True)
class EdgeTables:
    """Parquet files by table name, and what the planner knows of them."""

    folder: Path
    files: dict[str, tuple[str, ...]]
    schemas: dict[str, pa.Schema]

    @cached_property
    def catalog(self) -> MappingCatalog:
        """All tables; their statistics claim that they are large."""
        return MappingCatalog(
            [
                TableInfo(
                    name,
                    tuple(Field(f.name, from_arrow(f.type)) for f in schema),
                    TableStats(1_000_000, 1 << 30, len(self.files[name]), _no_stats(schema)),
                )
                for name, schema in self.schemas.items()
            ]
        )


def _no_stats(schema: pa.Schema) -> dict[str, ColumnStats]:
    return {name: ColumnStats() for name in schema.names}


def write_edge_tables(folder: Path) -> EdgeTables:
    """All tables: `e` (edges of all types), `g` (groups), `x` and `y` (joins), `z` (no rows), `n` and `np` (nested)."""
    tables: dict[str, tuple[list[list[dict[str, Any]]], pa.Schema]] = {
        "e": ([edge_rows(320)], EDGE_SCHEMA),
        "g": ([group_rows(n, n + 40) for n in (0, 40, 80)], GROUP_SCHEMA),
        "x": ([join_rows(1, 25), join_rows(2, 20)], JOIN_SCHEMA),
        "y": ([join_rows(3, 18), join_rows(4, 12)], JOIN_SCHEMA),
        "z": ([[]], JOIN_SCHEMA),
        "n": ([nested_rows(0, 120)], NESTED_SCHEMA),
        "np": ([nested_rows(n, n + 30) for n in (500, 530, 560)], NESTED_SCHEMA),
        "jt": ([json_rows()], JSON_SCHEMA),
        "cv": ([csv_rows()], CSV_SCHEMA),
    }
    files = {}
    for name, (parts, schema) in tables.items():
        paths = []
        for number, rows in enumerate(parts):
            path = folder / name / f"part-{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(rows, schema=schema)
            rows_of_group = ROW_GROUPS.get(name, 64)
            pq.write_table(table, path, row_group_size=rows_of_group, coerce_timestamps="us", store_schema=False)  # fmt: skip
            paths.append(str(path))
        files[name] = tuple(paths)
    return EdgeTables(folder, files, {name: schema for name, (_, schema) in tables.items()})


EDGE_SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("ti", pa.int8()), ("si", pa.int16()), ("i", pa.int32()), ("j", pa.int32()), ("l", pa.int64()), ("m", pa.int64()),
        ("k", pa.int32()), ("n", pa.int32()), *((n, pa.decimal128(*ps)) for n, ps in DECIMALS.items()),
        ("f", pa.float32()), ("f2", pa.float32()), ("d", pa.float64()), ("d2", pa.float64()), ("s", pa.string()), ("t", pa.string()), ("num", pa.string()),
        ("b", pa.bool_()), ("b2", pa.bool_()), ("dt", pa.date32()), ("du", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("tu", pa.timestamp("us", "UTC")),
        ("tn", pa.timestamp("us")), ("bin", pa.binary()),
    ]
)  # fmt: skip


def edge_rows(count: int) -> list[dict[str, Any]]:
    """Rows that mix edge values of all columns; rows 0 and 1 are all NULL and all 0 or empty."""
    rng = random.Random(20241103)
    rows = [_edge_row(rng, i) for i in range(count)]
    rows[0] = {"id": 0}
    return rows


def _edge_row(rng: random.Random, number: int) -> dict[str, Any]:
    def pick(pool: Sequence[Any]) -> Any:
        return None if rng.random() < 0.08 else rng.choice(pool)

    row: dict[str, Any] = {"id": number}
    for name, bits in BITS.items():
        top = 2 ** (bits - 1)
        small = rng.randint(-(10 ** rng.randint(0, 2)), 10 ** rng.randint(0, 2))
        wide = rng.randint(-top, top - 1) >> rng.randint(0, bits - 1)
        row[name] = pick([0, 1, -1, 2, 3, top - 1, -top, small, small, wide, wide])
    row["k"] = pick([0, 1, 2, 3, 5, 7, 10, 60])
    row["n"] = pick([-400, -13, -12, -1, 0, 1, 2, 3, 11, 12, 13, 365])
    for name, (precision, scale) in DECIMALS.items():
        top = 10**precision - 1
        wide = rng.randint(-top, top) // 10 ** rng.randint(0, precision)
        unscaled = pick([0, 1, -1, 5, 15, 25, 10**scale, top, -top, wide, wide, wide])
        row[name] = None if unscaled is None else exact(unscaled, scale)
    for name in ("d", "d2"):
        row[name] = pick([*DOUBLES, rng.uniform(-100, 100), rng.gauss(0, 1e9), float(rng.randint(-9, 9))] * 2)  # fmt: skip
    for name in ("f", "f2"):
        row[name] = pick([*FLOATS, rng.uniform(-100, 100), float(rng.randint(-9, 9))])
    for name in ("s", "t"):
        word = "".join(rng.choice("abcABC _%ßé日\n") for _ in range(rng.randint(0, 6)))
        row[name] = pick([*STRINGS, word, word, word])
    row["num"] = pick(["0", "12", "-7", str(rng.randint(-99999, 99999)), f"{rng.uniform(-9, 9):.3f}"])  # fmt: skip
    row["b"], row["b2"] = pick([True, False]), pick([True, False])
    for name in ("dt", "du"):
        row[name] = pick([*DATES, dt.date(2020, 1, 1) + dt.timedelta(rng.randint(-9999, 9999))])
    for name in ("ts", "tu"):
        row[name] = pick([t.replace(tzinfo=UTC) for t in TIMES])
    row["tn"] = pick(TIMES)
    row["bin"] = pick([b"", b"a", b"\x00\x7f", b"abc"])
    return row


GROUP_SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("g", pa.string()), ("h", pa.int32()), ("gd", pa.float64()), ("gf", pa.float32()), ("gc", pa.decimal128(10, 4)), ("gt", pa.date32()),
        ("ti", pa.int8()), ("si", pa.int16()), ("i", pa.int32()), ("l", pa.int64()), ("d52", pa.decimal128(5, 2)), ("d152", pa.decimal128(15, 2)),
        ("d200", pa.decimal128(20, 0)), ("d384", pa.decimal128(38, 4)), ("f", pa.float32()), ("d", pa.float64()), ("s", pa.string()), ("b", pa.bool_()),
        ("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")), ("bin", pa.binary()), ("never", pa.int32()),
    ]
)  # fmt: skip


def group_rows(start: int, stop: int) -> list[dict[str, Any]]:
    """Rows of a few groups: group 'nulls' has only NULLs, the NULL group is a group too."""
    rng = random.Random(start)
    rows = []
    for number in range(start, stop):
        g = rng.choice(["a", "b", "ß", "", None, "nulls", "one"])
        row: dict[str, Any] = {"id": number, "g": g, "h": rng.choice([1, 2, 3, None])}
        row["gd"] = rng.choice([0.0, -0.0, math.nan, 1.5, None])
        row["gf"] = rng.choice([0.0, -0.0, math.nan, 0.1, None])
        row["gc"] = rng.choice([Decimal("1.0000"), Decimal("0.0000"), Decimal("-1.5000"), None])
        row["gt"] = rng.choice([dt.date(1970, 1, 1), dt.date(2024, 2, 29), None])
        if g != "nulls":
            row |= _measures(rng)
        rows.append(row)
    return rows


def _measures(rng: random.Random) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    return {
        "ti": maybe(rng.randint(-128, 127)),
        "si": maybe(rng.choice([-32768, 32767, rng.randint(-9, 9)])),
        "i": maybe(rng.choice([2**31 - 1, -(2**31), rng.randint(-9, 9)])),
        "l": maybe(rng.choice([2**53 + 1, -(2**53), rng.randint(-9, 9)])),
        "d52": maybe(exact(rng.randint(-99999, 99999), 2)),
        "d152": maybe(exact(rng.randint(-(10**15) + 1, 10**15 - 1), 2)),
        "d200": maybe(Decimal(rng.randint(-(10**20) + 1, 10**20 - 1))),
        "d384": maybe(exact(rng.randint(-(10**30), 10**30), 4)),
        "f": maybe(rng.choice([0.0, -0.0, 0.1, rng.uniform(-100, 100)])),
        "d": maybe(rng.choice([0.0, -0.0, 0.1, rng.uniform(-100, 100)])),
        "s": maybe(rng.choice([*STRINGS, "a", "b"])),
        "b": maybe(rng.choice([True, False])),
        "dt": maybe(rng.choice(DATES)),
        "ts": maybe(rng.choice(TIMES).replace(tzinfo=UTC)),
        "tn": maybe(rng.choice(TIMES)),
        "bin": maybe(rng.choice([b"", b"a", b"\x7f"])),
    }


JOIN_SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("k", pa.int32()), ("kl", pa.int64()), ("ks", pa.string()), ("kd", pa.float64()), ("kc", pa.decimal128(10, 4)),
        ("kt", pa.date32()), ("kb", pa.bool_()), ("v", pa.int32()), ("w", pa.decimal128(15, 2)), ("s", pa.string()),
    ]
)  # fmt: skip


def join_rows(seed: int, count: int) -> list[dict[str, Any]]:
    """Rows whose keys meet, repeat, miss and are NULL."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    return [
        {
            "id": seed * 100 + number,
            "k": maybe(rng.randint(0, 9)),
            "kl": maybe(rng.choice([0, 1, 2, 3, 2**40])),
            "ks": maybe(rng.choice(["", "a", "b", "ß", "line\n"])),
            "kd": maybe(rng.choice([0.0, -0.0, math.nan, 1.5, -1.5, math.inf])),
            "kc": maybe(rng.choice([Decimal("1.0000"), Decimal("2.5000"), Decimal("0.0000")])),
            "kt": maybe(rng.choice([dt.date(1970, 1, 1), dt.date(2024, 2, 29)])),
            "kb": maybe(rng.choice([True, False])),
            "v": maybe(rng.randint(-5, 5)),
            "w": maybe(exact(rng.randint(-999, 999), 2)),
            "s": maybe(rng.choice(["", "a", "B", "ß", "z", "ab"])),
        }
        for number in range(count)
    ]


NESTED_SCHEMA = pa.schema(
    [
        ("id", pa.int32()), ("i", pa.int32()), ("j", pa.int32()), ("l", pa.int64()), ("s", pa.string()), ("d", pa.float64()), ("b", pa.bool_()), ("k", pa.int32()),
        ("ai", pa.list_(pa.int32())), ("bi", pa.list_(pa.int32())), ("al", pa.list_(pa.int64())), ("ad", pa.list_(pa.float64())), ("bd", pa.list_(pa.float64())),
        ("sa", pa.list_(pa.string())), ("sb", pa.list_(pa.string())), ("ab", pa.list_(pa.bool_())), ("ac", pa.list_(pa.decimal128(10, 2))), ("ay", pa.list_(pa.date32())),
        ("aa", pa.list_(pa.list_(pa.int32()))), ("ba", pa.list_(pa.list_(pa.int32()))),
        ("st", pa.struct([("f", pa.int32()), ("g", pa.string()), ("d", pa.float64())])), ("su", pa.struct([("f", pa.int32()), ("g", pa.string()), ("d", pa.float64())])),
        ("sn", pa.struct([("p", pa.struct([("q", pa.int32()), ("a", pa.list_(pa.int32()))])), ("A b", pa.string())])),
        ("ast", pa.list_(pa.struct([("f", pa.int32()), ("g", pa.string())]))), ("bst", pa.list_(pa.struct([("f", pa.int32()), ("g", pa.string())]))),
        ("mi", pa.map_(pa.int32(), pa.string())), ("mj", pa.map_(pa.int32(), pa.string())), ("ms", pa.map_(pa.string(), pa.int32())), ("md", pa.map_(pa.float64(), pa.int32())),
        ("deep", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32()))), ("x", pa.int32())]))),
    ]
)  # fmt: skip


def nested_rows(start: int, stop: int) -> list[dict[str, Any]]:
    """Rows of arrays, structs and maps: NULL, empty, NULL members, duplicates, NaN and -0.0."""
    rng = random.Random(start + 20260101)
    rows = [_nested_row(rng, number) for number in range(start, stop)]
    if start == 0:
        rows[0] = {"id": 0}
    return rows


def _nested_row(rng: random.Random, number: int) -> dict[str, Any]:
    def pick(pool: Sequence[Any]) -> Any:
        return None if rng.random() < 0.15 else rng.choice(pool)

    def listed(make: Any, most: int = 5) -> Any:
        if rng.random() < 0.1:
            return None
        return [make() for _ in range(rng.choice([0, 1, 2, 3, most]))]

    def struct(*pools: tuple[str, Sequence[Any]]) -> Any:
        return None if rng.random() < 0.12 else {name: pick(pool) for name, pool in pools}

    def mapped(keys: Sequence[Any], values: Sequence[Any]) -> Any:
        if rng.random() < 0.1:
            return None
        return [(key, pick(values)) for key in rng.sample(keys, rng.randint(0, len(keys)))]

    ints, texts = [0, 1, 2, 3, -1, 2**31 - 1, -(2**31)], ["", "a", "b", "ß", "a,b", "日本", "B"]
    doubles = [0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]
    row: dict[str, Any] = {"id": number, "i": pick(ints), "j": pick([0, 1, 2, -1, -2, 5])}
    row |= {"l": pick([0, 1, 2**40, -1]), "s": pick(texts), "d": pick(doubles)}
    row |= {"b": pick([True, False]), "k": pick([0, 1, 2, 3, 4])}
    for name in ("ai", "bi"):
        row[name] = listed(lambda: pick(ints))
    row["al"] = listed(lambda: pick([1, 2, 3, 2**40]))
    for name in ("ad", "bd"):
        row[name] = listed(lambda: pick(doubles))
    for name in ("sa", "sb"):
        row[name] = listed(lambda: pick(texts))
    row["ab"] = listed(lambda: pick([True, False]))
    row["ac"] = listed(lambda: pick([Decimal("1.50"), Decimal("-0.25"), Decimal("0.00")]))
    row["ay"] = listed(lambda: pick([dt.date(1970, 1, 1), dt.date(2024, 2, 29)]))
    for name in ("aa", "ba"):
        row[name] = listed(lambda: listed(lambda: pick([0, 1, 2]), 2), 3)
    for name in ("st", "su"):
        row[name] = struct(("f", [0, 1, 2]), ("g", ["", "a", "ß"]), ("d", [0.0, -0.0, math.nan]))
    inner = struct(("q", [1, 2]), ("a", [[], [1], [None, 2]]))
    row["sn"] = None if rng.random() < 0.1 else {"p": inner, "A b": pick(texts)}
    for name in ("ast", "bst"):
        row[name] = listed(lambda: struct(("f", [0, 1, 2]), ("g", ["", "a"])), 4)
    row["mi"], row["mj"] = mapped([0, 1, 2, 3], texts), mapped([1, 2, 5], texts)
    row["ms"] = mapped(["a", "", "ß", "k"], ints)
    row["md"] = mapped([0.0, 1.5, math.nan, math.inf], ints)
    row["deep"] = listed(lambda: {"m": mapped(["a", "b"], [[], [1, None]]), "x": pick([1, 2])}, 2)
    return row


JSON_TEXTS = [
    '{"a":1,"b":"x","c":null,"d":[1,2.5,"q"],"e":{"f":1,"g":true}}', ' { "a" : "y" , "d" : [ ] } ', '[1, {"a":2}]', '"text"', "null", "true", "-7", '{"a":"x\\u00e9\\n\\"/"}', '{"a":1,"a":2}',
    '{"a":null,"a":2}', '{"a":12345678901234567890123}', '{"a":18446744073709551615}', '{"a":-9223372036854775808}', '{"a":{"b" : 1 , "c":[ ]}}', '{"a":1.0}', '{"a":-0.0}', '{"a":-0}', '{"a":1e3}',
    '{"a":2.50}', '{"a":0.001}', '{"a":0.0001}', '{"a":1234567.5}', '{"a":12345678.5}', '{"a":0.1234567}', '{"a":[{"b":1},{"b":2}]}', '{"a":{"a":{"a":"deep"}}}', '{"e":{"f":"日本","f":null}}', "[]", "{}",
    '[[1],[2,3]]', '{"a":["x",null,1.5]}', '{"a":""}', '{"a":"null"}', '{"a":false}', '{"日":1,"a":"ß"}', '{"a":"1.50"}', '{"a":3,"d":[[7,8],{"x":9}]}', '{"A":1}',
]  # fmt: skip
ODD_JSON_TEXTS = [
    "", " ", "{a:1}", '{"a":1} x', "{'a':1}", '{"a":NaN}', '{"a":01}', '{"a":1', "[1,", '{"a":"x\u0001"}', '{"a":+1}', "nope", '{"a":"\\ud800"}', '{"a":1,}', '{"a":.5}', '{"a":-Infinity}',
]  # fmt: skip
JSON_DAYS = [
    "2024-02-29", "2023-02-29", "2024-2-9", "2024-02", "0000-01-01", "0001-01-01", "9999-12-31", "1582-10-10", "2024-02-29T10:11:12", "2024-02-29 10:11:12.5", "2024-02-29 10:11:12.123456", "2024-02-29T10:11:12.1234567", "2024-02-29T10:11:12Z",
    "2024-02-29T10:11:12+02:00", "2024-02-29 25:00:00", "2024-02-29 24:00:00", "2024-02-29 10:11", "", " ", "now", "abc", "2024", "19782", " 2024-02-29", "2024-02-29 ", "1500-02-29 00:00:00", "10000-01-01", "-0001-01-01",
]  # fmt: skip
JSON_SCHEMA = pa.schema([("id", pa.int32()), ("js", pa.string()), ("odd", pa.string()), ("day", pa.string())])  # fmt: skip


def json_rows() -> list[dict[str, Any]]:
    """Rows of JSON texts, and in `odd` of texts that are none, or only to Spark."""
    texts: list[str | None] = [None, *JSON_TEXTS]
    odd = [*ODD_JSON_TEXTS, *JSON_TEXTS]
    days = itertools.cycle([*JSON_DAYS, None])
    return [
        {"id": i, "js": text, "odd": odd[i % len(odd)], "day": next(days)}
        for i, text in enumerate(texts)
    ]
