"""Two small tables whose columns are named after the errors that their values cause."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.differential.edge_tables import EdgeTables

# `zero`, `n` (NULL), `bad` (no number and no time), and the greatest values of types.
T = pa.schema(
    [
        ("i", pa.int32()), ("j", pa.int32()), ("l", pa.int64()), ("d", pa.float64()), ("c", pa.decimal128(10, 2)),
        ("s", pa.string()), ("b", pa.bool_()), ("dt", pa.date32()), ("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")),
        ("bin", pa.binary()), ("arr", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("zero", pa.int32()), ("n", pa.int32()), ("bad", pa.string()),
        ("top", pa.int32()), ("ltop", pa.int64()), ("small", pa.int8()), ("big", pa.decimal128(38, 0)), ("huge", pa.float64()),
    ]
)  # fmt: skip
U = pa.schema(
    [
        ("i", pa.int32()),
        ("x", pa.int32()),
        ("s", pa.string()),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)


def write_error_tables(folder: Path) -> EdgeTables:
    """The tables `t` and `u`, of two rows each."""
    other = [{"i": k, "x": k + 4, "s": "ab"[k - 1], "m": [("a", 1)]} for k in (1, 2)]
    schemas, files = {"t": T, "u": U}, {}
    for name, rows in (("t", [_row(1), _row(2)]), ("u", other)):
        path = folder / name / "part-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schemas[name]), path, store_schema=False)
        files[name] = (str(path),)
    return EdgeTables(folder, files, schemas)


def _row(k: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 2, 29, 10, 11, 12)
    return {
        "i": k, "j": k * 10, "l": k, "d": k + 0.5, "c": Decimal(k) + Decimal("0.25"), "s": "a", "b": k == 1,
        "dt": dt.date(2024, 2, 27 + k), "ts": moment.replace(tzinfo=dt.UTC), "tn": moment, "bin": b"ab", "arr": [1, 2],
        "m": [("a", k)], "st": {"a": k, "b": "x"}, "zero": 0, "n": None, "bad": "x", "top": 2**31 - 1, "ltop": 2**63 - 1,
        "small": 127, "big": Decimal("9" * 38), "huge": 1e300,
    }  # fmt: skip
