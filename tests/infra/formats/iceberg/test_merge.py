"""Merges into Iceberg tables: rows replaced by key, compared with a model after each step."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.errors import InputLostError, StorageError
from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.publishing import merging
from tests.infra.formats.iceberg.answers import rows as rows_of
from tests.infra.formats.iceberg.handmade import HandmadeTable
from tests.infra.formats.iceberg.lake import Lake, local_lake, stored_catalog
from tests.infra.formats.published.outputs import rows_of_every_type
from tests.infra.publishing.merge_model import Model, Row, shown, table_of
from tests.share import EVERYTHING

ROWS = pa.schema([("k", pa.int64()), ("name", pa.string())])
MERGE: dict[str, Any] = {"mode": "merge", "key": ("k",)}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return local_lake(tmp_path)


def rows(*items: tuple[int | None, str | None]) -> pa.Table:
    return table_of([{"k": k, "name": v} for k, v in items], ROWS)


def found(lake: Lake) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in lake.rows()), key=repr)


def test_rows_are_replaced_inserted_and_deleted_by_one_snapshot(lake: Lake) -> None:
    parts = [rows((1, "a"), (2, "b")), rows((5, "e"), (6, "f")), rows((3, "c"))]
    lake.publish(parts, target_file_bytes=1)
    before = {f.rsplit("/", 1)[1] for f in lake.data_files()}
    flags = pa.array([None, True, False])
    result = rows((1, "A"), (3, "x"), (4, "D")).append_column("gone", flags)
    published = lake.publish(result, **MERGE, delete_column="gone")
    assert found(lake) == [(1, "A"), (2, "b"), (4, "D"), (5, "e"), (6, "f")]
    assert (published.num_rows, published.version.mode, published.version.num_rows) == (
        2,
        "merge",
        5,
    )
    assert len(lake.opened.snapshots()) == 2
    paths = lake.opened.inspect.data_files()["file_path"].to_pylist()
    live = {path.rsplit("/", 1)[1] for path in paths}
    assert len(live & before) == 1  # of three files two held a key
    assert lake.opened.current_snapshot().summary.operation.value == "overwrite"


def test_the_first_merge_creates_the_table(lake: Lake) -> None:
    lake.publish(rows((1, "a"), (None, "n")), **MERGE)
    lake.publish(rows((None, "N"), (2, "b")), **MERGE)
    assert found(lake) == [(1, "a"), (2, "b"), (None, "N")]
    assert lake.opened.current_snapshot().summary.operation.value == "overwrite"
    lake.publish(rows((7, "g")), **MERGE)  # nothing is replaced
    assert lake.opened.current_snapshot().summary.operation.value == "append"
    assert lake.publish(rows((7, "g")), **MERGE).reused


def test_all_rows_may_go(lake: Lake) -> None:
    lake.publish(rows((1, "a")))
    result = rows((1, "a")).append_column("gone", pa.array([True]))
    lake.publish(result, **MERGE, delete_column="gone")
    assert (found(lake), lake.opened.inspect.data_files().num_rows) == ([], 0)
    lake.publish(rows((1, "b")), **MERGE)
    assert found(lake) == [(1, "b")]


def test_duplicates_are_refused_before_anything_is_written(lake: Lake) -> None:
    lake.publish(rows((1, "a")))
    with pytest.raises(PublishError, match="have the key k = 2, and mode merge needs one row"):
        lake.publish([rows((2, "x")), rows((2, "y"))], **MERGE)
    assert (found(lake), len(lake.data_files())) == ([(1, "a")], 1)
    assert list(lake.store.list(f"iceberg/{lake.table}/pending")) == []


def test_deletes_of_other_writers_stay_deleted(lake: Lake, tmp_path: Path) -> None:
    """Rows that position and equality deletes have removed do not come back."""
    table = HandmadeTable(tmp_path / "lake" / "t")
    table.schema(
        {"id": 1, "name": "k", "type": "long"}, {"id": 2, "name": "name", "type": "string"}
    )
    one = table.data(rows((0, "a"), (1, "b"), (2, "c"), (3, "d")))
    two = table.data(rows((10, "e"), (11, "f"), (12, "g")))
    table.commit(one, two)
    table.commit(table.position_deletes({one.path: [0, 3], two.path: [1]}))
    table.commit(table.equality_deletes(pa.table({"k": pa.array([2], pa.int64())})))
    lake.catalog.create_namespace_if_not_exists("tpch")
    lake.catalog.register_table(lake.table, f"file://{table.save()}")
    lake.publish(rows((1, "B"), (2, "C"), (11, "F")), **MERGE)
    catalog = stored_catalog(lake)
    sql = f"SELECT k, name FROM {lake.table}"
    answer = [(row["k"], row["name"]) for row in rows_of(catalog, sql, tmp_path)]
    assert sorted(answer) == [(1, "B"), (2, "C"), (10, "e"), (11, "F"), (12, "g")]
    live = lake.opened.inspect.data_files()["file_path"].to_pylist()
    assert two.path in live  # its row with the key 11 is deleted, so no row of it goes
    assert one.path not in live


def test_files_of_an_older_schema_are_written_in_the_present_one(lake: Lake) -> None:
    lake.publish(rows((1, "a"), (2, "b")))
    with lake.opened.update_schema() as schema:
        schema.rename_column("name", "label")
        schema.add_column("more", pyiceberg_int())
    result = pa.table({"k": [1], "label": ["A"], "more": pa.array([7], pa.int32())})
    lake.publish(result, **MERGE)
    assert found(lake) == [(1, "A", 7), (2, "b", None)]


def pyiceberg_int() -> Any:
    from pyiceberg.types import IntegerType

    return IntegerType()


def test_types_that_iceberg_has_not_are_kept_as_they_are_stored(lake: Lake) -> None:
    """A `smallint` of the result is an `int` of the table, where another writer has larger ones."""
    lake.publish(pa.table({"k": pa.array([1, 2], pa.int16())}))
    lake.opened.append(pa.table({"k": pa.array([70_000], pa.int32())}))
    lake.publish(pa.table({"k": pa.array([2, 3], pa.int16())}), **MERGE)
    assert [row["k"] for row in sorted(lake.rows(), key=lambda row: row["k"])] == [1, 2, 3, 70_000]


@pytest.mark.parametrize("removed", [0, 1])
def test_rows_that_stay_are_as_they_were(lake: Lake, removed: int) -> None:
    """Values of every type, and NULL of each, are written again bit by bit."""
    given = rows_of_every_type(single=math.nan, real=-0.0, text="ü\0", day=dt.date(1, 1, 1))
    given = given.append_column("k", pa.array([0, 1], pa.int64()))
    lake.publish(given)
    before = lake.opened.scan().to_arrow().sort_by("k").slice(1 - removed, 1)
    flags = given.slice(removed, 1).append_column("gone", pa.array([True]))
    lake.publish(flags, **MERGE, delete_column="gone")
    after = lake.opened.scan().to_arrow()
    assert {name: repr(after[name].to_pylist()) for name in after.column_names} == {
        name: repr(before[name].to_pylist()) for name in before.column_names
    }


# ---------------------------------------------------------------- races


@pytest.mark.parametrize("rows_of_others", ["same key", "other key", "compaction"])
def test_another_writer_is_first(
    lake: Lake, rows_of_others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files that are new in the table are looked at, and no row is lost or doubled."""
    lake.publish([rows((1, "a")), rows((2, "b"))], target_file_bytes=1)
    publish = merging.Merge.publish
    looked: list[int] = []
    rewrite = merging.Merge._rewrite_tasks

    def watched(self: Any, base: Any, files: Any) -> Any:
        looked.append(len(files))
        if len(looked) == 1:
            with monkeypatch.context() as patch:
                patch.setattr(merging.Merge, "_rewrite_tasks", rewrite)
                match rows_of_others:
                    case "same key":
                        lake.opened.append(rows((1, "z")))
                    case "other key":
                        lake.publish(rows((1, "late"), (3, "c")), **MERGE)
                    case "compaction":
                        lake.opened.overwrite(lake.opened.scan().to_arrow())
        return rewrite(self, base, files)

    monkeypatch.setattr(merging.Merge, "_rewrite_tasks", watched)
    assert publish is merging.Merge.publish
    lake.publish(rows((1, "A")), **MERGE)
    kept = [(3, "c")] if rows_of_others == "other key" else []
    assert found(lake) == [(1, "A"), (2, "b"), *kept]
    assert looked == [1, 1]
    assert list(lake.store.list(f"iceberg/{lake.table}/pending")) == []


@pytest.mark.parametrize("is_live", [False, True])
def test_a_file_goes_while_it_is_read(
    lake: Lake, is_live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer has replaced it and removed it; or it is lost, which is an error."""
    lake.publish(rows((1, "a"), (2, "b")))
    rewrite = merging.Merge._rewrite_tasks

    def removed(self: Any, base: Any, files: Any) -> Any:
        monkeypatch.undo()
        tasks = rewrite(self, base, files)
        if not is_live:
            lake.opened.overwrite(rows((1, "z"), (2, "B")))
        Path(files[0].uri).unlink()
        return tasks

    monkeypatch.setattr(merging.Merge, "_rewrite_tasks", removed)
    if is_live:
        with pytest.raises(InputLostError, match="there is no such file"):
            lake.publish(rows((1, "A")), **MERGE)
    else:
        lake.publish(rows((1, "A")), **MERGE)
        assert found(lake) == [(1, "A"), (2, "B")]


def test_a_table_that_always_changes_is_given_up(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.publish(rows((1, "a")))
    look_at = merging.Merge._look_at

    def overtaken(self: Any, base: Any) -> None:
        look_at(self, base)
        lake.opened.append(rows((9, "x")))

    monkeypatch.setattr(merging.Merge, "_look_at", overtaken)
    monkeypatch.setattr(merging, "MAX_MERGE_TRIES", 3)
    with pytest.raises(StorageError, match="other writers were first 3 times") as raised:
        lake.publish(rows((1, "A")), **MERGE)
    assert raised.value.retryable
    assert found(lake) == [(1, "a"), *[(9, "x")] * 3]


# ---------------------------------------------------------------- random histories

SCHEMA = pa.schema(
    [("x", pa.float64()), ("s", pa.string()), ("v", pa.int64()), ("gone", pa.bool_())]
)
ROW = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, math.nan, 0.0, -0.0, 1.5]),
        "s": st.sampled_from([None, "", "a", "ß", "z" * 70]),
        "v": st.integers(0, 10**6),
        "gone": st.sampled_from([None, False, False, True]),
    }
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["merge"] * 4 + ["append", "other writer"]), st.lists(ROW, max_size=6)
    ),
    min_size=3,
    max_size=6,
)


@settings(
    max_examples=40 if EVERYTHING else 8, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    key=st.sampled_from([("x",), ("s",), ("s", "x")]),
    steps=STEPS,
    partition_by=st.sampled_from([(), ("s",)]),
)
def test_histories_equal_the_model(
    tmp_path_factory: pytest.TempPathFactory,
    key: tuple[str, ...],
    steps: list[tuple[str, list[Row]]],
    partition_by: tuple[str, ...],
) -> None:
    lake = local_lake(tmp_path_factory.mktemp("lake"))
    model = Model(key)
    plain_schema = pa.schema([f for f in SCHEMA if f.name != "gone"])
    target: dict[str, Any] = {"partition_by": partition_by, "target_file_bytes": 1}
    lake.publish(table_of([], plain_schema), **target)
    for number, (mode, result) in enumerate(steps):
        plain = [{k: v for k, v in row.items() if k != "gone"} for row in result]
        if mode == "merge":
            tables = [table_of(result[:2], SCHEMA), table_of(result[2:], SCHEMA)]
            merge = {**target, "mode": "merge", "key": key, "delete_column": "gone"}
            if model.has_duplicates(result):
                with pytest.raises(PublishError, match="several rows of the result"):
                    lake.publish(tables, **merge, name=str(number))
                continue
            lake.publish(tables, **merge, name=str(number))
            model.merge(result, "gone")
        else:
            model.rows += plain
            if mode == "append":
                lake.publish(
                    table_of(plain, plain_schema), **target, mode="append", name=str(number)
                )
            elif plain:
                lake.opened.append(table_of(plain, plain_schema))
        assert shown(lake.rows()) == shown(model.rows)
