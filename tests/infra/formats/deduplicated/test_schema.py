"""What becomes of a table's columns: growth, widening, and what is refused before it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.infra.formats.deduplicated.schema import wider_type
from stagecoach.infra.formats.deduplicated.table import ChunkTable
from stagecoach.infra.storage.local_store import LocalStore
from stagecoach.planner.types import DataType, Field, parse_type
from tests.infra.formats.deduplicated.model import KEYED, plain, visible


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int", "int", "int"),
        ("tinyint", "bigint", "bigint"),
        ("int", "double", "double"),
        ("float", "double", "double"),
        ("bigint", "double", None),
        ("int", "float", None),
        ("decimal(10,2)", "double", None),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(10,4)", "decimal(12,4)"),
        ("decimal(38,0)", "decimal(38,2)", None),
        ("int", "decimal(5,2)", "decimal(12,2)"),
        ("bigint", "decimal(20,0)", "decimal(20,0)"),
        ("void", "string", "string"),
        ("string", "int", None),
        ("date", "timestamp", None),
        ("timestamp_ntz", "timestamp", None),
        ("boolean", "int", None),
        ("array<int>", "array<int>", "array<int>"),
        ("array<int>", "array<bigint>", None),
    ],
)
def test_wider_types(left: str, right: str, expected: str | None) -> None:
    wanted = None if expected is None else parse_type(expected)
    assert wider_type(parse_type(left), parse_type(right)) == wanted
    assert wider_type(parse_type(right), parse_type(left)) == wanted


@pytest.fixture
def table(tmp_path: Path) -> ChunkTable:
    return ChunkTable("t", LocalStore(str(tmp_path / "t")), KEYED)


def types_of(table: ChunkTable) -> dict[str, str]:
    return {f.name: str(f.dtype) for f in table.read().columns}


def files_of(table: ChunkTable) -> list[str]:
    return list(table.store.list("chunks"))


def test_columns_are_added_and_widened(table: ChunkTable) -> None:
    table.append([pa.table({"k": pa.array([1, 2], pa.int16()), "v": pa.array([1, 2], pa.int32())})])
    table.append([pa.table({"K": pa.array([2, 3], pa.int64()), "w": ["x", "y"]})])
    table.append([pa.table({"k": pa.array([3], pa.int8()), "V": pa.array([0.5])})])
    assert types_of(table) == {"k": "bigint", "v": "double", "w": "string"}
    assert plain(visible(table)) == {
        (1,): {"k": 1, "v": 1},
        (2,): {"k": 2, "w": "x"},
        (3,): {"k": 3, "v": 0.5},
    }
    # A chunk keeps its own types, under the table's spelling.
    kept = [[f"{f.name} {f.dtype}" for f in c.columns] for c in table.read().chunks]
    assert kept == [["k smallint", "v int"], ["k bigint", "w string"], ["k bigint", "v double"]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"v": [1]}, r"'k' of the primary key of table 't' is missing \(there are v\)"),
        ({"k": ["x"]}, r"column 'k' of table 't' is bigint, here string, and no type"),
        ({"k": [1], "v": [1.5]}, r"column 'v' of table 't' is bigint, here double"),
        ({"k": [1], "__x": [1]}, r"column '__x': names must not be empty or start with '__'"),
        ({"k": [1], "a": [1], "A": [1]}, r"columns 'a' and 'A' have the same name"),
        ({"k": [1], "t": pa.array([1], pa.time32("s"))}, r"'t' is of Arrow type time32\[s\]"),
        (
            {"k": [1], "n": pa.array([1], pa.timestamp("ns"))},
            r"a value of column 'n' cannot be converted",
        ),
        ({"k": pa.array([1.0])}, r"column 'k' of table 't' is bigint, here double"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_refusals_change_nothing(table: ChunkTable, rows: dict[str, Any], message: str) -> None:
    table.append([pa.table({"k": [1], "v": [1]})])
    before, files = table.read(), files_of(table)
    with pytest.raises(AppendError, match=message):
        table.append([pa.table({"k": [7], "v": [7]}), pa.table(rows)])
    assert table.read() == before
    assert files_of(table) == files


def test_nothing_is_written_before_all_schemas_are_checked(
    table: ChunkTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(LocalStore, "open_output", fail)
    with pytest.raises(AppendError, match=r"rows 1: column 'v'"):
        table.append([pa.table({"k": [1], "v": [1]}), pa.table({"k": [1], "v": ["x"]})])


@pytest.mark.parametrize(
    ("declared", "rows", "message"),
    [
        ({"time_column": "s"}, {"k": [1], "s": ["x"]}, r"its time column 's' is of type string"),
        ({"delete_column": "d"}, {"k": [1], "d": [1]}, r"its delete column 'd' is of type bigint"),
        ({"version_column": "v"}, {"k": [1]}, r"its version column 'v' is not a column"),
        ({"partition_by": ("p",)}, {"k": [1], "p": [1.5]}, r"partitioned by 'p' of type double"),
        ({"primary_key": ("l",)}, {"l": [[1]]}, r"'l' of type array<bigint> cannot be part"),
    ],
    ids=lambda v: str(v),
)
def test_roles_need_their_types(
    tmp_path: Path, declared: dict[str, Any], rows: dict[str, Any], message: str
) -> None:
    declaration = Declaration(**{"primary_key": ("k",), **declared})
    table = ChunkTable("t", LocalStore(str(tmp_path)), declaration)
    with pytest.raises(AppendError, match=message):
        table.append([pa.table(rows)])
    assert table.current() is None


def test_times_must_not_be_null(tmp_path: Path) -> None:
    declaration = Declaration(primary_key=("k", "t"), time_column="t")
    table = ChunkTable("t", LocalStore(str(tmp_path)), declaration)
    with pytest.raises(AppendError, match=r"time column 't' of table 't' is NULL in 1 rows"):
        table.append([pa.table({"k": [1, 2], "t": [None, 5]})])
    with pytest.raises(AppendError, match=r"the time column 't' of table 't' is missing"):
        table.append([pa.table({"k": [1, 2]})], allow_missing_keys=True)
    assert files_of(table) == []


def test_missing_keys_may_be_allowed(table: ChunkTable) -> None:
    two = ChunkTable("t", table.store, Declaration(primary_key=("a", "k")))
    rows = pa.table({"k": [1, 1], "v": [1, 2]})
    with pytest.raises(AppendError, match=r"column 'a' of the primary key"):
        two.append([rows], allow_missing_keys=True)  # nobody knows its type yet
    two.create((Field("k", DataType("int")), Field("a", DataType("string"))))
    two.append([rows], allow_missing_keys=True, sort=True)
    assert two.read().columns[0] == Field("k", DataType("bigint"))
    (chunk,) = two.read().chunks
    assert (chunk.null_columns, chunk.num_rows, chunk.sort_order) == (("a",), 1, ("k",))
    assert plain(visible(two)) == {(None, 1): {"k": 1, "v": 2}}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("interval day to second", r"'v' is of Arrow type duration"),
        ("interval year to month", r"create: a column of type 'interval year to month' cannot"),
    ],
)
def test_a_table_is_created_with_types_that_can_be_stored(
    table: ChunkTable, kind: str, message: str
) -> None:
    with pytest.raises(AppendError, match=message):
        table.create((Field("k", DataType("int")), Field("v", parse_type(kind))))
    assert table.current() is None


def test_columns_of_nulls_take_the_type_that_there_is(table: ChunkTable) -> None:
    table.append([pa.table({"k": [1], "v": ["x"], "n": pa.nulls(1)})])
    table.append([pa.table({"k": [2], "v": pa.nulls(1)})])
    assert types_of(table) == {"k": "bigint", "v": "string"}


def test_types_that_arrow_has_and_spark_has_not(table: ChunkTable) -> None:
    table.append(
        [
            pa.table(
                {
                    "k": pa.array([1], pa.uint16()),
                    "a": pa.array([1000], pa.timestamp("ns", "Europe/Berlin")),
                    "b": pa.array([86_400_000], pa.date64()),
                    "c": pa.array(["x"]).dictionary_encode(),
                    "d": pa.array(["x"], pa.large_string()),
                    "e": pa.array([5], pa.timestamp("s")),
                }
            )
        ]
    )
    assert list(types_of(table).values()) == [
        *("int", "timestamp", "date", "string", "string", "timestamp_ntz")
    ]


@pytest.mark.parametrize(
    ("theirs", "ours", "message"),
    [
        ({"Size": [1]}, {"size": [1]}, r"has just got a column 'Size', spelled 'size'"),
        ({"size": ["x"]}, {"size": [1]}, r"'size' of table 't' is string, here bigint"),
        ({"size": pa.array([1], pa.int16())}, {"size": [1]}, None),
    ],
)
def test_another_writer_may_have_added_the_column(
    table: ChunkTable,
    monkeypatch: pytest.MonkeyPatch,
    theirs: dict[str, Any],
    ours: dict[str, Any],
    message: str | None,
) -> None:
    """Types are checked once more against the version that the commit follows."""
    from stagecoach.infra.formats.deduplicated.writer import ChunkWriter

    table.append([pa.table({"k": [1]})])
    original = ChunkWriter.append

    def interrupted(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        monkeypatch.setattr(ChunkWriter, "append", original)
        table.append([pa.table({"k": [2], **theirs})])

    monkeypatch.setattr(ChunkWriter, "append", interrupted)
    if message is None:
        table.append([pa.table({"k": [3], **ours})])
        assert types_of(table) == {"k": "bigint", "size": "bigint"}
        assert set(visible(table)) == {(1,), (2,), (3,)}
        return
    with pytest.raises(AppendError, match=message):
        table.append([pa.table({"k": [3], **ours})])
    assert set(visible(table)) == {(1,), (2,)}
    assert len(files_of(table)) == 2
