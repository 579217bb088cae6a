"""Recorded rows come back as they were; masked values are gone, and equal ones stay equal."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagecoach.assets.query_tests.compare import difference
from stagecoach.assets.query_tests.parse import parse_tests
from stagecoach.assets.query_tests.record import Mask, RecordError, recorded_text
from stagecoach.assets.query_tests.rows import WrittenRows
from stagecoach.planner.types import Field, arrow_schema, parse_type

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(),
    "float": st.floats(width=32),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "binary": st.binary(),
    "decimal(38,10)": st.decimals(-(10**27), 10**27, places=10),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)),
    "timestamp_ntz": st.datetimes(),
    "array<string>": st.lists(st.one_of(st.none(), st.text("a:#{}[],'\"\n -?&*!|>%@`\\"))),
    "map<string,int>": st.lists(st.tuples(st.text("ab:#, "), st.just(1)), unique_by=lambda p: p[0]),
    "struct<a:date,b:array<bigint>>": st.fixed_dictionaries(
        {"a": st.one_of(st.none(), st.dates()), "b": st.lists(st.integers(-5, 5))}
    ),
}
FIELDS = tuple(Field(f"c {i}" if i % 3 else f"c{i}", parse_type(kind)) for i, kind in enumerate(KINDS))  # fmt: skip
ROWS = st.lists(st.tuples(*(st.one_of(st.none(), values) for values in KINDS.values())), max_size=4)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_rows_come_back(rows: list[tuple[Any, ...]]) -> None:
    schema = arrow_schema(FIELDS)
    columns = list(zip(*rows, strict=True)) if rows else [[] for _ in FIELDS]
    arrays = [pa.array(list(v), f.type) for v, f in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    text = recorded_text(
        name="a: 'b' \"c\"", tables={"t": (FIELDS, table)}, parameters={"p": "x: y"},
        now=dt.datetime(2024, 1, 2, 3, 4, 5), result=(FIELDS, table),
    )  # fmt: skip
    file, places = parse_tests(text, "q.yaml")
    assert file.now == dt.datetime(2024, 1, 2, 3, 4, 5)
    assert file.tests[0].name == "a: 'b' \"c\""
    assert file.tests[0].parameters == {"p": "x: y"}
    for source, location in ((file.given["t"], ("given", "t")), (file.tests[0].expect, ("tests", 0, "expect"))):  # fmt: skip
        written = WrittenRows(source=source, location=location, places=places, folder=Path())  # type: ignore[arg-type]
        found = written.table(FIELDS, "Europe/Berlin")
        assert difference(table, found, ordered=True) is None


def masked(values: list[Any], kind: str, mask: Mask) -> list[Any]:
    field = Field("c", parse_type(kind))
    table = pa.table({"c": pa.array(values, arrow_schema((field,)).field(0).type)})
    found: list[Any] = mask.applied("t", [field], table).column(0).to_pylist()
    return found


def test_equal_values_stay_equal_and_null_stays() -> None:
    mask = Mask(["C"])
    assert masked(["x", None, "y", "x"], "string", mask) == ["masked_1", None, "masked_2", "masked_1"]  # fmt: skip
    assert masked([7, 8], "bigint", mask) == [3, 4]
    assert masked([Decimal("8.00")], "decimal(10,2)", mask) == [Decimal("4.00")]
    nan = masked([math.nan, math.nan, 0.5], "double", mask)
    assert nan[0] == nan[1] != nan[2]
    assert masked([dt.date(1990, 5, 5)], "date", mask)[0].year == 2000
    assert masked([b"x"], "binary", mask) == [b"masked_8"]
    mask.check_used()


def test_masks_that_hide_nothing_are_refused() -> None:
    mask = Mask(["t.c", "other.c"])
    assert masked(["x"], "string", mask) == ["masked_1"]
    with pytest.raises(RecordError, match=r"no column 'other\.c' to mask"):
        mask.check_used()
    with pytest.raises(RecordError, match="type boolean cannot be masked"):
        masked([True], "boolean", Mask(["c"]))
