"""Merges into Delta tables: rows replaced by key, compared with a model after each step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stagecoach.infra.formats.publishing import PublishError
from stagecoach.infra.publishing import merging
from tests.infra.formats.delta.handmade import HandmadeTable, field
from tests.infra.formats.delta.lake import DeltaLake, local_lake
from tests.infra.publishing.merge_model import Model, Row, shown, table_of

ROWS = pa.schema([("k", pa.int64()), ("name", pa.string())])
MERGE: dict[str, Any] = {"mode": "merge", "key": ("k",)}


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return local_lake(tmp_path)


def rows(*items: tuple[int | None, str | None]) -> pa.Table:
    return table_of([{"k": k, "name": v} for k, v in items], ROWS)


def found(lake: DeltaLake) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in lake.rows()), key=repr)


def test_rows_are_replaced_inserted_and_deleted_by_one_entry(lake: DeltaLake) -> None:
    parts = [rows((1, "a"), (2, "b")), rows((5, "e"), (6, "f")), rows((3, "c"))]
    lake.publish(parts, target_file_bytes=1)
    before, version = lake.live_files(), lake.opened.version()
    flags = pa.array([None, True, False])
    result = rows((1, "A"), (3, "x"), (4, "D")).append_column("gone", flags)
    published = lake.publish(result, **MERGE, delete_column="gone")
    assert found(lake) == [(1, "A"), (2, "b"), (4, "D"), (5, "e"), (6, "f")]
    made = published.version
    assert (published.num_rows, made.mode, made.num_rows, made.number) == (
        *(2, "merge", 5),
        version + 1,
    )
    assert len(lake.live_files() & before) == 1  # of three files two held a key


def test_the_first_merge_creates_the_table(lake: DeltaLake) -> None:
    lake.publish(rows((1, "a"), (None, "n")), **MERGE)
    lake.publish(rows((None, "N"), (2, "b")), **MERGE)
    assert found(lake) == [(1, "a"), (2, "b"), (None, "N")]
    lake.publish(rows((7, "g")), **MERGE)  # nothing is replaced
    assert lake.publish(rows((7, "g")), **MERGE).reused


def test_all_rows_may_go(lake: DeltaLake) -> None:
    lake.publish(rows((1, "a")))
    result = rows((1, "a")).append_column("gone", pa.array([True]))
    lake.publish(result, **MERGE, delete_column="gone")
    assert (found(lake), lake.live_files()) == ([], set())
    lake.publish(rows((1, "b")), **MERGE)
    assert found(lake) == [(1, "b")]


def test_duplicates_are_refused_before_anything_is_written(lake: DeltaLake) -> None:
    lake.publish(rows((1, "a")))
    with pytest.raises(PublishError, match="have the key k = 2, and mode merge needs one row"):
        lake.publish([rows((2, "x")), rows((2, "y"))], **MERGE)
    assert (found(lake), len(lake.data_files()), lake.pending()) == ([(1, "a")], 1, [])


def handmade(lake: DeltaLake, features: tuple[str, ...], **configuration: str) -> HandmadeTable:
    named = {name.replace("_", "."): value for name, value in configuration.items()}
    table = HandmadeTable(Path(lake.location), features, named)
    table.schema(field("k", "long"), field("name", "string"))
    return table


def test_a_file_with_a_deletion_vector_is_not_replaced(lake: DeltaLake) -> None:
    table = handmade(lake, ("deletionVectors",))
    one = table.data(rows((0, "a"), (1, "b"), (2, "c")))
    two = table.data(rows((10, "e"), (11, "f")))
    table.commit(one, two)
    table.delete(one, [2])
    lake.publish(rows((2, "C"), (11, "F")), **MERGE)  # the row with the key 2 is deleted
    expected = [(0, "a"), (1, "b"), (10, "e"), (11, "F"), (2, "C")]
    assert found(lake) == expected
    with pytest.raises(PublishError, match="has a deletion vector, and deltalake cannot remove"):
        lake.publish(rows((1, "B")), **MERGE)
    assert (found(lake), lake.pending()) == (expected, [])


def test_a_change_data_feed_is_refused(lake: DeltaLake) -> None:
    table = handmade(lake, (), delta_enableChangeDataFeed="true")
    table.commit(table.data(rows((0, "a"))))
    with pytest.raises(PublishError, match="uses the Delta writer feature 'changeDataFeed'"):
        lake.publish(rows((1, "B")), **MERGE)


def test_files_of_an_older_schema_are_written_in_the_present_one(lake: DeltaLake) -> None:
    lake.publish(rows((1, "a"), (2, "b")))
    more = pa.table({"k": [3], "name": ["c"], "more": pa.array([5], pa.int32())})
    write_deltalake(lake.opened, more, mode="append", schema_mode="merge")
    result = pa.table({"k": [1], "name": ["A"], "more": pa.array([7], pa.int32())})
    lake.publish(result, **MERGE)
    assert found(lake) == [(1, "A", 7), (2, "b", None), (3, "c", 5)]


# ---------------------------------------------------------------- races


@pytest.mark.parametrize("rows_of_others", ["same key", "other key", "compaction"])
def test_another_writer_is_first(
    lake: DeltaLake, rows_of_others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files that are new in the table are looked at, and no row is lost or doubled."""
    lake.publish([rows((1, "a")), rows((2, "b"))], target_file_bytes=1)
    looked: list[int] = []
    rewrite = merging.Merge._rewrite_tasks

    def watched(self: Any, base: Any, files: Any) -> Any:
        looked.append(len(files))
        if len(looked) == 1:
            with monkeypatch.context() as patch:
                patch.setattr(merging.Merge, "_rewrite_tasks", rewrite)
                match rows_of_others:
                    case "same key":
                        write_deltalake(lake.opened, rows((1, "z")), mode="append")
                    case "other key":
                        lake.publish(rows((1, "late"), (3, "c")), **MERGE)
                    case "compaction":
                        lake.opened.optimize.compact()
        return rewrite(self, base, files)

    monkeypatch.setattr(merging.Merge, "_rewrite_tasks", watched)
    lake.publish(rows((1, "A")), **MERGE)
    kept = [(3, "c")] if rows_of_others == "other key" else []
    assert found(lake) == [(1, "A"), (2, "b"), *kept]
    assert looked == [1, 1]
    assert lake.pending() == []


# ---------------------------------------------------------------- random histories

SCHEMA = pa.schema(
    [("x", pa.float64()), ("s", pa.string()), ("v", pa.int64()), ("gone", pa.bool_())]
)
ROW = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, math.nan, 0.0, -0.0, 1.5, -2.0, math.inf]),
        "s": st.sampled_from([None, " ", "a", "ab", "ß", "a/b=%41", "\U0001f600", "z" * 70]),
        "v": st.integers(0, 10**6),
        "gone": st.sampled_from([None, False, False, True]),
    }
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["merge"] * 4 + ["append", "other writer"]), st.lists(ROW, max_size=6)
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
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
                write_deltalake(lake.opened, table_of(plain, plain_schema), mode="append")
        assert shown(lake.rows()) == shown(model.rows)
