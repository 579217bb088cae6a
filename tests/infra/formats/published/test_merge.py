"""Merges into published tables: rows replaced by key, compared with a model after each step."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.formats.protocol import Access
from stagecoach.infra.formats.published.log import clear_table, read_current
from stagecoach.infra.formats.published.table_format import FORMAT
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.publishing import merging
from stagecoach.infra.publishing.publish import Published
from stagecoach.infra.storage.local_store import LocalStore
from tests.infra.formats.published.outputs import (
    objects_in,
    paths_of,
    publish_rows,
    read_rows,
    rows_of_every_type,
)
from tests.infra.publishing.merge_model import Model, Row, shown, table_of
from tests.share import EVERYTHING

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def rows(*items: tuple[int | None, str]) -> pa.Table:
    return table_of([{"id": k, "name": v} for k, v in items], ROWS)


def merge(store: LocalStore, *parts: pa.Table, **target: Any) -> Published:
    given: dict[str, Any] = {"mode": "merge", "key": ("id",), **target}
    return publish_rows(store, list(parts), **given)


def table_rows(store: LocalStore) -> list[tuple[Any, ...]]:
    version = read_current(store, "t")
    assert version is not None
    return sorted((tuple(row.values()) for row in read_rows(store, version)), key=repr)


def test_rows_are_replaced_inserted_and_deleted(store: LocalStore) -> None:
    publish_rows(store, [rows((1, "a"), (2, "b")), rows((5, "e"))])
    flags = pa.array([None, False, True])
    result = rows((1, "A"), (3, "C"), (2, "x")).append_column("gone", flags)
    published = merge(store, result, delete_column="gone")
    assert table_rows(store) == [(1, "A"), (3, "C"), (5, "e")]
    assert published.version.columns == read_current(store, "t").columns
    assert (published.version.number, published.version.mode) == (2, "merge")
    assert (published.num_rows, published.version.num_rows) == (2, 3)


def test_the_first_merge_makes_the_table(store: LocalStore) -> None:
    merge(store, rows((1, "a")))
    assert table_rows(store) == [(1, "a")]


def test_only_files_that_hold_keys_are_replaced(store: LocalStore) -> None:
    """One is ruled out by its bounds, one is read and holds no key, one is rewritten in place."""
    parts = [rows((1, "a"), (9, "i")), rows((2, "b"), (8, "h")), rows((20, "t"))]
    publish_rows(store, parts, target_file_bytes=1)
    before = [file.path for file in read_current(store, "t").files]
    looked = []
    rewrite = merging.Merge._rewrite_tasks

    def watched(self: Any, base: Any, files: Any) -> Any:
        looked.extend(file.uri.rsplit("/", 1)[1] for file in files)
        return rewrite(self, base, files)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging.Merge, "_rewrite_tasks", watched)
        merge(store, rows((9, "I"), (7, "g")))
    after = [file.path for file in read_current(store, "t").files]
    assert looked == [path.rsplit("/", 1)[1] for path in before[:2]]
    assert after[1:3] == before[1:]
    assert after[0] not in before
    assert len(after) == 4
    assert len(objects_in(store, "results/t/files")) == 5  # the replaced one, until gc removes it


def test_a_merge_that_removes_all_rows_keeps_the_columns(store: LocalStore) -> None:
    publish_rows(store, rows((1, "a")))
    flagged = rows((1, "a")).append_column("gone", pa.array([True]))
    version = merge(store, flagged, delete_column="gone").version
    assert (version.num_rows, version.has_data, version.num_files) == (0, True, 1)
    assert [c.name for c in FORMAT.stored(store, "t", Access()).state().info.columns] == [
        "id",
        "name",
    ]
    merge(store, rows((2, "b")))
    assert table_rows(store) == [(2, "b")]
    assert read_current(store, "t").num_files == 1


def test_a_key_that_occurs_twice_is_refused(store: LocalStore) -> None:
    publish_rows(store, rows((1, "a")))
    before = objects_in(store)
    text = r"several rows of the result have the key id = 7, name = 'x', .* \(id, name\)"
    with pytest.raises(PublishError, match=text):
        merge(store, rows((7, "x"), (8, "x")), rows((7, "x")), key=("id", "name"))
    with pytest.raises(PublishError, match="have the key id = NULL"):
        merge(store, rows((None, "x"), (None, "y")))
    assert objects_in(store) - before == {o for o in objects_in(store) if "/stages/" in o}
    assert table_rows(store) == [(1, "a")]


def test_the_same_result_is_merged_once(store: LocalStore) -> None:
    """Until another one has been; then it counts again, unless it is the same run's."""
    assert not merge(store, rows((1, "a"))).reused
    assert merge(store, rows((1, "a"))).reused
    merge(store, rows((1, "b")))
    assert not merge(store, rows((1, "a"))).reused
    assert table_rows(store) == [(1, "a")]
    # with another key it is another merge
    assert not merge(store, rows((1, "a")), key=("id", "name")).reused
    clear_table(store, "t")
    assert not merge(store, rows((1, "a"))).reused


def test_each_partition_has_its_last_merge(store: LocalStore) -> None:
    first = merge(store, rows((1, "a")), partition_keys=("d1",))
    merge(store, rows((1, "b")), partition_keys=("d2",))
    again = merge(store, rows((1, "a")), partition_keys=("d1",))
    assert (again.reused, again.version.number, first.version.number) == (True, 2, 1)
    assert table_rows(store) == [(1, "b")]
    # files of partition d2 are replaced as a whole, and rows that d1 has merged stay
    merge(store, rows((1, "B"), (2, "c")), partition_keys=("d1",), name="other")
    target = {"mode": "replace_partition", "partition_keys": ("d2",)}
    publish_rows(store, rows((3, "d")), **target)
    assert table_rows(store) == [(1, "B"), (2, "c"), (3, "d")]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"key": ()}, "'t': mode merge needs a key"),
        ({"key": ("ID", "nr")}, "key names 'nr', which is not a column of the result"),
        ({"delete_column": "name"}, "'name', which is string; it must be boolean"),
        ({"key": ("id", "gone"), "delete_column": "gone"}, "'gone' is delete_column and part of"),
        ({"key": ("list",)}, "key names 'list', which is array<int>; a key has simple types"),
    ],
)
def test_what_a_merge_needs(store: LocalStore, target: dict[str, Any], message: str) -> None:
    result = rows((1, "a")).append_column("gone", pa.array([False]))
    kind = pa.list_(pa.field("element", pa.int32()))
    result = result.append_column("list", pa.array([[1]], kind))
    with pytest.raises(PublishError, match=message):
        merge(store, result, **target)


def test_a_table_with_other_columns_is_refused(store: LocalStore) -> None:
    publish_rows(store, pa.table({"id": [1]}))
    with pytest.raises(PublishError, match="column 'name' is missing there and string here"):
        merge(store, rows((1, "a")))


@pytest.mark.parametrize(
    ("there", "given", "kind"),
    [
        (None, None, pa.int64()),
        (None, None, pa.float64()),
        (math.nan, -math.nan, pa.float64()),
        (-0.0, 0.0, pa.float32()),
        (dt.date(2024, 2, 29), dt.date(2024, 2, 29), pa.date32()),
        (Decimal("-0.01"), Decimal("-0.01"), pa.decimal128(38, 2)),
        (b"\0\xff", b"\0\xff", pa.binary()),
        (False, False, pa.bool_()),
    ],
)
def test_keys_are_equal_as_in_group_by(
    store: LocalStore, there: Any, given: Any, kind: pa.DataType
) -> None:
    def table(key: Any, value: str) -> pa.Table:
        return pa.table({"id": pa.array([key], kind), "name": [value]})

    publish_rows(store, table(there, "old"))
    merge(store, table(given, "new"))
    version = read_current(store, "t")
    assert version is not None
    assert [row["name"] for row in read_rows(store, version)] == ["new"]
    with pytest.raises(PublishError, match="several rows"):
        merge(store, table(there, "a"), table(given, "b"))


@pytest.mark.parametrize("removed", [0, 1])
@pytest.mark.parametrize(
    ("real", "day"), [(math.nan, dt.date.min), (-0.0, dt.date.max), (5e-324, dt.date(1582, 10, 4))]
)
def test_rows_that_stay_are_as_they_were(
    store: LocalStore, removed: int, real: float, day: dt.date
) -> None:
    """Values of every type, and NULL of each, are written again bit by bit."""
    single = real if math.isnan(real) or real == 0 else 1e-45
    table = rows_of_every_type(single=single, real=real, text="ü\0\U0001f600", day=day)
    table = table.append_column("id", pa.array([0, 1], pa.int64()))
    publish_rows(store, table)
    flags = table.slice(removed, 1).append_column("gone", pa.array([True]))
    version = merge(store, flags, delete_column="gone").version
    (path,) = paths_of(store, version)
    kept, expected = pq.read_table(path), table.slice(1 - removed, 1)
    assert kept.schema.equals(expected.schema)
    for name in table.column_names:
        assert repr(kept[name].to_pylist()) == repr(expected[name].to_pylist()), name


# ---------------------------------------------------------------- random histories

SCHEMA = pa.schema(
    [
        ("x", pa.float64()),
        ("s", pa.string()),
        ("part", pa.int32()),
        ("value", pa.int64()),
        ("gone", pa.bool_()),
    ]
)
FLOATS = st.sampled_from([None, math.nan, -math.nan, 0.0, -0.0, 1.5])
TEXTS = st.sampled_from([None, "", "a", "ß", "\U0001f600", "z" * 70])
ROW = st.fixed_dictionaries(
    {
        "x": FLOATS,
        "s": TEXTS,
        "part": st.sampled_from([None, 1, 2, 3]),
        "value": st.integers(0, 10**6),
        "gone": st.sampled_from([None, False, False, True]),
    }
)
KEYS = st.sampled_from([("x",), ("s",), ("x", "s"), ("part", "s"), ("s", "x", "part")])
STEPS = st.lists(
    st.tuples(st.sampled_from(["merge"] * 4 + ["append", "replace"]), st.lists(ROW, max_size=6)),
    min_size=3,
    max_size=8,
)


@settings(
    max_examples=100 if EVERYTHING else 25, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(key=KEYS, steps=STEPS, partition_by=st.sampled_from([(), ("part",)]), parts=st.booleans())
def test_histories_equal_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    steps: list[tuple[str, list[Row]]],
    partition_by: tuple[str, ...],
    parts: bool,
) -> None:
    store = LocalStore(str(tmp_path_factory.mktemp("t")))
    model = Model(key)
    for number, (mode, result) in enumerate(steps):
        target: dict[str, Any] = {"partition_by": partition_by, "name": f"step{number}"}
        if parts:
            target["target_file_bytes"] = 1
        if mode != "merge":
            plain = [{k: v for k, v in row.items() if k != "gone"} for row in result]
            model.rows = plain + (model.rows if mode == "append" else [])
            schema = pa.schema([f for f in SCHEMA if f.name != "gone"])
            publish_rows(store, table_of(plain, schema), mode=mode, **target)
        else:
            tables = [table_of(result[:2], SCHEMA), table_of(result[2:], SCHEMA)]
            target |= {"mode": "merge", "key": key, "delete_column": "gone"}
            if model.has_duplicates(result):
                with pytest.raises(PublishError, match="several rows of the result"):
                    publish_rows(store, tables, **target)
                continue
            publish_rows(store, tables, **target)
            model.merge(result, "gone")
        assert shown(_stored(store)) == shown(model.rows)


def _stored(store: LocalStore) -> list[Row]:
    """Rows of the newest version, with the values of folders."""
    version = read_current(store, "t")
    assert version is not None
    found: list[Row] = []
    for file in version.files:
        one = type(version)(**{**vars(version), "files": (file,)})
        values = {
            name: None if v is None else int(v)
            for name, v in zip(version.partition_by, file.partition, strict=True)
        }
        found += [{**row, **values} for row in read_rows(store, one)]
    return found
