"""Rows as they come: four formats, Arrow data, and what their types become."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from stagecoach.infra.formats.deduplicated import sources
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.infra.formats.deduplicated.sources import open_source
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.types import Field, arrow_schema, parse_type
from tests.infra.formats.deduplicated.model import KEYED, visible

COLUMNS = tuple(
    Field(name, parse_type(kind))
    for name, kind in {
        "k": "int",
        "zip": "string",
        "price": "decimal(10,2)",
        "day": "date",
        "at": "timestamp",
        "local": "timestamp_ntz",
        "ok": "boolean",
        "x": "double",
    }.items()
)
ROWS: list[dict[str, Any]] = [
    {
        "k": 1,
        "zip": "01234",
        "price": Decimal("1.50"),
        "day": datetime.date(2024, 1, 31),
        "at": datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC),
        "local": datetime.datetime(2024, 1, 31, 12, 0, 0, 500000),
        "ok": True,
        "x": 1.0,
    },
    {"k": 2, **dict.fromkeys(["zip", "price", "day", "at", "local", "ok", "x"])},
]
CSV = """k,zip,price,day,at,local,ok,x
1,01234,1.50,2024-01-31,2024-01-31T12:00:00Z,2024-01-31 12:00:00.5,true,1
2,,,,,,,
"""
NDJSON = """{"k": 1, "zip": "01234", "price": "1.50", "day": "2024-01-31", "at": "2024-01-31T12:00:00Z",
 "local": "2024-01-31 12:00:00.5", "ok": true, "x": 1}
{"k": 2}
"""


@pytest.fixture
def table(tmp_path: Path) -> ChunkTable:
    made = ChunkTable("t", LocalStore(str(tmp_path / "t")), KEYED)
    made.create(COLUMNS)
    return made


def write(path: Path) -> str:
    rows = pa.Table.from_pylist(ROWS, arrow_schema(COLUMNS))
    match path.suffixes[0]:
        case ".parquet":
            pq.write_table(rows, path)
        case ".arrow":
            with pa.ipc.new_file(str(path), rows.schema) as writer:
                writer.write_table(rows)
        case ".arrows":
            with pa.ipc.new_stream(str(path), rows.schema) as writer:
                writer.write_table(rows)
        case ".csv" if path.suffix == ".gz":
            path.write_bytes(gzip.compress(CSV.encode()))
        case ".csv":
            path.write_text(CSV)
        case ".tsv":
            path.write_text(CSV.replace(",", "\t"))
        case _:
            path.write_text(NDJSON)
    return str(path)


@pytest.mark.parametrize(
    "name",
    ["a.parquet", "a.arrow", "a.arrows", "a.csv", "a.csv.gz", "a.tsv", "a.ndjson", "a.jsonl"],
)
def test_every_format_gives_the_same_rows(table: ChunkTable, tmp_path: Path, name: str) -> None:
    table.append([write(tmp_path / name)])
    assert list(visible(table).values()) == ROWS
    assert table.read().columns == COLUMNS


def test_rows_in_memory(table: ChunkTable) -> None:
    rows = pa.Table.from_pylist(ROWS, arrow_schema(COLUMNS))
    for item in (
        rows,
        rows.to_batches()[0],
        rows.to_reader(),
        ROWS,
        pd.DataFrame({"k": [1, 2], "zip": ["01234", None]}),
    ):
        appended = table.append([item])
        assert appended.num_rows == 2
    assert [c.num_rows for c in table.read().chunks] == [2] * 5
    assert visible(table)[1,]["zip"] == "01234"


def test_numbers_of_text_fit_or_widen(table: ChunkTable, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,new\n3,1\n")
    table.append([str(path)])
    assert table.read().chunks[0].columns[0].dtype == parse_type("int")
    path.write_text("k,new\n3000000000,1\n")
    table.append([str(path)])
    assert table.read().columns[0].dtype == parse_type("bigint")
    (tmp_path / "b.ndjson").write_text('{"k": 4, "new": 2}\n')
    table.append([str(tmp_path / "b.ndjson")])
    assert table.read().chunks[2].num_rows == 1


def test_quotes_tell_an_empty_text_from_null(table: ChunkTable, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('k,zip,note\n1,"","line\nbreak"\n2,,NaN\n')
    table.append([str(path)])
    rows = visible(table)
    assert rows[1,]["zip"] == ""
    assert rows[1,]["note"] == "line\nbreak"
    assert (rows[2,]["zip"], rows[2,]["note"]) == (None, "NaN")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.xlsx", "", r"its name tells no known format"),
        ("a.parquet", "k,v", r"a.parquet: cannot be read as parquet"),
        ("a.arrow", "k", r"cannot be read as arrow"),
        ("a.csv", "", r"cannot be read as csv: Empty CSV file"),
        (
            "a.csv",
            "k,x\n1,abc\n",
            r"a.csv: cannot be read as csv: .*column #1.*invalid value 'abc'",
        ),
        ("a.csv", "k,at\n1,2024-01-31 12:00:00\n", r"need a zone, such as 2024-01-31T12:00:00Z"),
        ("a.ndjson", '{"k": 1\n', r"cannot be read as ndjson"),
        ("a.ndjson", '{"k": "x"}\n', r"cannot be read as ndjson: .*k.* string"),
        ("missing.csv", None, r"missing.csv: it does not exist"),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_named(
    table: ChunkTable, tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(AppendError, match=message):
        table.append([str(tmp_path / name)])
    assert not table.read().chunks


def test_other_things_are_no_rows(table: ChunkTable) -> None:
    with pytest.raises(
        AppendError, match=r"int is not a table, a frame, a list of mappings or the path"
    ):
        table.append([7])


def test_empty_files_add_no_chunks(table: ChunkTable, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,zip\n")
    (tmp_path / "a.ndjson").write_text('{"k": 9}\n\n')
    empty = arrow_schema(COLUMNS).empty_table()
    appended = table.append([str(tmp_path / "a.csv"), empty, str(tmp_path / "a.ndjson")])
    assert (appended.num_rows, len(appended.chunks)) == (1, 1)


def test_large_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE_ROWS", 100)
    monkeypatch.setattr(sources, "_BATCH_ROWS", 30)
    pq.write_table(pa.table({"k": list(range(250))}), tmp_path / "a.parquet")
    table = ChunkTable("t", LocalStore(str(tmp_path / "t")), KEYED)
    appended = table.append([str(tmp_path / "a.parquet")])
    assert [c.num_rows for c in appended.chunks] == [120, 120, 10]
    assert [c.sequence for c in appended.chunks] == [1, 2, 3]
    assert list(visible(table)) == [(k,) for k in range(250)]
    assert open_source(pa.table({"k": [1]}), ()).place == "rows"
