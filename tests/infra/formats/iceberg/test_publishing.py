"""Results become Iceberg tables: what pyiceberg reads of them, for each mode and each type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from stagecoach.infra.formats.publishing import PartitionWindow, PublishError
from stagecoach.planner.types import Field, parse_column_type
from tests.infra.formats.iceberg.answers import rows as rows_of
from tests.infra.formats.iceberg.handmade import HandmadeTable
from tests.infra.formats.iceberg.lake import Lake, local_lake, stored_catalog
from tests.infra.formats.published.outputs import rows_of_every_type

DAYS = [dt.date(2024, 1, day) for day in (1, 2, 3)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return local_lake(tmp_path)


def numbered(*keys: int) -> pa.Table:
    return pa.table(
        {"k": pa.array(keys, pa.int64()), "name": pa.array([f"row {k}" for k in keys], pa.string())}
    )


def keys_of(lake: Lake) -> list[int]:
    return sorted(row["k"] for row in lake.rows())


def daily(*rows: tuple[dt.date | None, int]) -> pa.Table:
    return pa.table(
        {
            "day": pa.array([day for day, _ in rows], pa.date32()),
            "k": pa.array([k for _, k in rows], pa.int64()),
        }
    )


def partition(*days: dt.date) -> dict[str, Any]:
    """What a run of some days says of its target."""
    return {
        "mode": "replace_partition",
        "partition_keys": tuple(map(str, days)),
        "partition_column": "day",
        "windows": tuple(PartitionWindow(str(d), d, d + dt.timedelta(1)) for d in days),
    }


def test_a_table_is_created_and_replaced(lake: Lake) -> None:
    published = lake.publish(numbered(1, 2), comments=(("k", "the key"),))
    table = lake.opened
    assert (published.num_rows, published.reused, published.version.has_data) == (2, False, True)
    assert published.version.number == table.current_snapshot().snapshot_id
    assert published.num_bytes == sum(file.num_bytes for file in published.files) > 0
    assert (table.format_version, table.schema().find_field("k").doc) == (2, "the key")
    assert keys_of(lake) == [1, 2]
    lake.publish(numbered(3), mode="replace")
    assert keys_of(lake) == [3]
    assert lake.opened.current_snapshot().summary.operation.value == "overwrite"
    assert lake.store.folders("iceberg") == ["tpch.orders"]
    assert list(lake.store.list("iceberg/tpch.orders/pending")) == []


def test_the_same_result_is_published_once(lake: Lake) -> None:
    first = lake.publish(numbered(1), mode="append")
    again = lake.publish(numbered(1), mode="append")
    assert (again.reused, again.version, again.files) == (True, first.version, first.files)
    lake.publish(numbered(2), mode="append")
    assert lake.publish(numbered(1), mode="append").reused
    assert keys_of(lake) == [1, 2]
    assert len(lake.opened.snapshots()) == 2


def test_what_others_append_is_replaced(lake: Lake) -> None:
    lake.publish(numbered(1))
    lake.opened.append(numbered(7))
    assert not lake.publish(numbered(1)).reused
    assert keys_of(lake) == [1]
    assert lake.publish(numbered(1)).reused


def test_rows_that_were_cleared_are_appended_again(lake: Lake) -> None:
    lake.publish(numbered(1), mode="append")
    lake.opened.delete()
    assert not lake.publish(numbered(1), mode="append").reused
    assert keys_of(lake) == [1]


def test_an_empty_result_makes_a_table_without_files(lake: Lake) -> None:
    published = lake.publish(numbered(), mode="append")
    assert (published.num_rows, published.files) == (0, ())
    assert lake.rows() == []
    assert lake.publish(numbered(), mode="append").reused
    lake.publish(numbered(1))
    lake.publish(numbered())
    assert lake.rows() == []


def test_partitions_are_replaced(lake: Lake) -> None:
    one, two, three = DAYS
    lake.publish(daily((one, 1), (two, 2)), **partition(one, two))
    lake.publish(daily((three, 3)), **partition(three))
    assert keys_of(lake) == [1, 2, 3]
    published = lake.publish(daily((two, 20), (two, 21)), **partition(two))
    assert published.partition_rows == {"2024-01-02": 2}
    assert keys_of(lake) == [1, 3, 20, 21]
    assert lake.publish(daily((two, 20), (two, 21)), **partition(two)).reused
    lake.publish(daily(), **partition(one, three))
    assert keys_of(lake) == [20, 21]
    with pytest.raises(PublishError, match="outside of the partitions of this run"):
        lake.publish(daily((three, 9)), **partition(two))


def test_a_key_told_by_text_replaces_its_rows(lake: Lake) -> None:
    def rows(*pairs: tuple[str, int]) -> pa.Table:
        return pa.table({"state": [s for s, _ in pairs], "k": [k for _, k in pairs]})

    long = "x" * 40
    target = {"mode": "replace_partition", "partition_column": "state"}
    lake.publish(rows((long, 1), ("b", 2)), partition_keys=(long, "b"), **target)
    lake.publish(rows((f"{long}y", 3)), partition_keys=(f"{long}y",), **target)
    lake.publish(rows((long, 10)), partition_keys=(long,), **target)
    assert keys_of(lake) == [2, 3, 10]


def test_a_file_with_rows_of_other_partitions_is_refused(lake: Lake) -> None:
    one, two, _ = DAYS
    lake.publish(daily((one, 1)), **partition(one))
    lake.opened.append(daily((one, 5), (two, 6)))
    with pytest.raises(PublishError, match="has rows of the partitions of this run and others"):
        lake.publish(daily((two, 2)), **partition(two))
    assert keys_of(lake) == [1, 5, 6]


def test_partition_by_makes_identity_partitions(lake: Lake) -> None:
    rows = pa.table(
        {
            "flag": [True, True, None, False],
            "day": pa.array([DAYS[0], None, DAYS[1], DAYS[1]], pa.date32()),
            "at": pa.array([dt.datetime(2024, 1, 1, 1), None, None, None], pa.timestamp("us")),
            "price": pa.array([Decimal("1.50"), None, Decimal("-2.00"), None], pa.decimal128(9, 2)),
            "name": ["a/b=c", "", None, "é?#%"],
            "utc": pa.array([None, dt.datetime(1969, 1, 1), None, None], pa.timestamp("us", "UTC")),
            "k": [1, 2, 3, 4],
        }
    )
    names = ("flag", "day", "at", "price", "name", "utc")
    lake.publish(rows, partition_by=names)
    assert sorted(lake.rows(), key=lambda r: r["k"]) == rows.to_pylist()  # UTC equals UTC
    files = lake.opened.inspect.files().to_pylist()
    assert len(files) == 4
    found = lake.opened.inspect.partitions().to_pylist()
    given = [{name: row[name] for name in names} for row in rows.to_pylist()]
    assert sorted((p["partition"] for p in found), key=repr) == sorted(given, key=repr)
    assert lake.opened.scan("name = 'é?#%'").to_arrow().to_pylist() == [rows.to_pylist()[3]]
    assert len(list(lake.opened.scan("day = '2024-01-02'").plan_files())) == 2
    lake.publish(rows.slice(0, 1), mode="append")  # whatever the table is partitioned by
    with pytest.raises(PublishError, match=r"is partitioned by \(flag, day, .* says \(k\)"):
        lake.publish(rows, partition_by=("k",))


def test_values_of_every_type_are_kept(lake: Lake) -> None:
    rows = rows_of_every_type(single=math.nan, real=-0.0, text="ü\0", day=dt.date(1, 1, 1))
    lake.publish(rows)
    found = lake.opened.scan().to_arrow()
    assert {name: repr(found[name].to_pylist()) for name in found.column_names} == {
        name: repr(rows[name].to_pylist()).replace("<UTC>", "datetime.timezone.utc")
        for name in rows.column_names
    }
    kinds = {field.name: str(field.field_type) for field in lake.opened.schema().fields}
    assert (kinds["tiny"], kinds["small"], kinds["at"]) == ("int", "int", "timestamptz")
    for path in lake.opened.inspect.files()["file_path"].to_pylist():
        schema = pq.read_schema(path.removeprefix("file://"))
        ids = [field.metadata[b"PARQUET:field_id"] for field in schema]
        assert ids == [str(f.field_id).encode() for f in lake.opened.schema().fields]


def test_metrics_rule_files_out_and_never_rows(lake: Lake) -> None:
    text = ["a" * 15 + "\ud7ff", "\U0010ffff" * 20, None]
    rows = pa.table(
        {
            "text": text,
            "bytes": [b"\xff" * 20, b"\0", None],
            "wide": pa.array([Decimal(-(10**37)), Decimal(10**37), None], pa.decimal128(38, 0)),
            "real": [math.nan, 1.0, -0.0],
            "k": [-(2**31), 0, 2**31 - 1],
        }
    )
    lake.publish(rows)
    by_name = {f.name: f.field_id for f in lake.opened.schema().fields}
    (file,) = [task.file for task in lake.opened.scan().plan_files()]
    assert file.lower_bounds[by_name["text"]] == ("a" * 15 + "\ud7ff").encode()
    assert by_name["text"] not in file.upper_bounds  # nothing is above it
    assert by_name["bytes"] not in file.upper_bounds
    assert by_name["real"] not in file.lower_bounds
    assert file.null_value_counts[by_name["text"]] == 1
    for condition in ("text > 'b'", "wide > 0", "wide < 0", "k < -1000", "real >= 1"):
        assert lake.opened.scan(condition).to_arrow().num_rows == 1, condition
    assert not list(lake.opened.scan("text < 'a'").plan_files())
    assert not list(lake.opened.scan("k > 2147483647").plan_files())


def create(lake: Lake, schema: Schema, spec: PartitionSpec | None = None, version: int = 2) -> None:
    lake.catalog.create_namespace_if_not_exists("tpch")
    given = {"format-version": str(version)}
    lake.catalog.create_table(
        lake.table, schema, partition_spec=spec or PartitionSpec(), properties=given
    )


def test_a_table_of_others_is_published_to(lake: Lake) -> None:
    schema = Schema(
        NestedField(4, "day", DateType()), NestedField(9, "k", LongType(), required=True)
    )
    spec = PartitionSpec(PartitionField(4, 1000, IdentityTransform(), "d"))
    create(lake, schema, spec, version=1)
    lake.publish(daily((DAYS[0], 1), (DAYS[1], 2)), mode="append", comments=(("k", "key"),))
    lake.publish(daily((DAYS[1], 20)), **partition(DAYS[1]))
    assert keys_of(lake) == [1, 20]
    assert lake.opened.format_version == 1
    assert lake.opened.schema().find_field("k").doc == "key"
    nulls = pa.table({"day": pa.array([DAYS[0]]), "k": pa.array([None], pa.int64())})
    with pytest.raises(PublishError, match="column 'k' is required, and a row of the result has"):
        lake.publish(nulls, mode="append")
    assert keys_of(lake) == [1, 20]


def test_what_does_not_fit_a_table_is_refused(lake: Lake) -> None:
    bucketed = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b"))
    create(
        lake,
        Schema(NestedField(1, "k", LongType()), NestedField(2, "name", StringType())),
        bucketed,
    )
    with pytest.raises(PublishError, match=r"is partitioned by bucket\[4\]\(k\), and results"):
        lake.publish(numbered(1))
    lake.catalog.drop_table(lake.table)
    lake.publish(numbered(1))
    for rows, problem in (
        (pa.table({"k": [1]}), "column 'name' is string there and missing here"),
        (pa.table({"k": [1.0], "name": ["a"]}), "column 'k' is bigint there and double here"),
        (numbered(1).select(["name", "k"]), "the columns are in another order"),
    ):
        with pytest.raises(PublishError, match=problem):
            lake.publish(rows)
    with pytest.raises(PublishError, match=r"needs the column .* \(partitions.column\)"):
        lake.publish(numbered(1), mode="replace_partition", partition_keys=("a",))
    assert keys_of(lake) == [1]


@pytest.mark.parametrize(
    ("dtype", "problem"),
    [("interval day to second", "an interval"), ("void", "NULL without a type")],
)
def test_types_that_iceberg_lacks_are_refused(lake: Lake, dtype: str, problem: str) -> None:
    from stagecoach.infra.publishing.check import check_publishable

    with pytest.raises(PublishError, match=problem):
        check_publishable([Field("c", parse_column_type(dtype))], (), "iceberg")


def test_deletes_of_others_stay_in_effect(lake: Lake) -> None:
    """Equality deletes, which pyiceberg does not read, and position deletes."""
    made = HandmadeTable(lake.folder / "made")
    column = {"id": 1, "name": "k", "type": "long"}
    made.schema(column)
    made.spec({"name": "k", "transform": "identity", "source-id": 1})
    files = [
        made.data(pa.table({"k": pa.array([k] * 3, pa.int64())}), partition=(k,)) for k in (1, 2, 3)
    ]
    made.commit(*files)
    made.commit(
        made.position_deletes({files[0].path: [0]}, partition=(1,)),
        made.equality_deletes(pa.table({"k": pa.array([3], pa.int64())}), partition=(3,)),
    )
    lake.catalog.create_namespace("tpch")
    lake.catalog.register_table(lake.table, made.save())
    catalog: Any = stored_catalog(lake)

    def keys() -> list[int]:
        found = rows_of(catalog, "SELECT k FROM tpch.orders ORDER BY k", lake.folder)
        return [row["k"] for row in found]

    new = pa.table({"k": pa.array([3, 1], pa.int64())})
    lake.publish(new, mode="append")
    assert keys() == [1, 1, 1, 2, 2, 2, 3]
    lake.publish(
        pa.table({"k": pa.array([1], pa.int64())}),
        mode="replace_partition",
        partition_keys=("1", "2"),
        partition_column="k",
    )
    assert keys() == [1, 3]
    lake.publish(new, mode="replace")
    assert keys() == [1, 3]


def test_a_table_of_version_3_is_refused(lake: Lake) -> None:
    made = HandmadeTable(lake.folder / "made", 3)
    made.schema({"id": 1, "name": "k", "type": "long"})
    made.commit(made.data(pa.table({"k": [1]})))
    lake.catalog.create_namespace("tpch")
    lake.catalog.register_table(lake.table, made.save())
    with pytest.raises(
        PublishError, match="has version 3 of Iceberg's format; results are written"
    ):
        lake.publish(pa.table({"k": [1]}))
