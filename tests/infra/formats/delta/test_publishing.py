"""Results become Delta tables: what deltalake reads of them, for each mode and each type."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from stagecoach.infra.formats.publishing import OutputError, PartitionWindow, PublishError
from stagecoach.planner.types import Field, parse_column_type
from tests.infra.formats.delta.handmade import HandmadeTable, field, struct
from tests.infra.formats.delta.lake import DeltaLake, local_lake
from tests.infra.formats.published.outputs import rows_of_every_type

DAYS = [dt.date(2024, 1, day) for day in (1, 2, 3)]


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return local_lake(tmp_path)


def numbered(*keys: int) -> pa.Table:
    return pa.table(
        {"k": pa.array(keys, pa.int64()), "name": pa.array([f"row {k}" for k in keys], pa.string())}
    )


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


def statistics(lake: DeltaLake) -> list[dict[str, Any]]:
    """The statistics of the newest commit as they stand in the log."""
    log = Path(lake.location) / "_delta_log"
    newest = max(log.glob("*.json"))
    actions = map(json.loads, newest.read_text().splitlines())
    return [json.loads(a["add"]["stats"]) for a in actions if "add" in a]


def test_a_table_is_created_and_replaced(lake: DeltaLake) -> None:
    published = lake.publish(numbered(1, 2), comments=(("k", "the key"),))
    table = lake.opened
    assert (published.num_rows, published.reused, published.version.has_data) == (2, False, True)
    assert published.version.number == table.version()
    assert published.num_bytes == sum(file.num_bytes for file in published.files) > 0
    assert table.schema().fields[0].metadata == {"comment": "the key"}
    assert lake.keys() == [1, 2]
    lake.publish(numbered(3), mode="replace")
    assert lake.keys() == [3]
    assert lake.opened.history(1)[0]["stagecoach.mode"] == "replace"
    assert lake.store.folders("delta") == ["orders"]
    assert lake.pending() == []


def test_the_same_result_is_published_once(lake: DeltaLake) -> None:
    first = lake.publish(numbered(1), mode="append")
    again = lake.publish(numbered(1), mode="append")
    assert (again.reused, again.version, again.files) == (True, first.version, first.files)
    lake.publish(numbered(2), mode="append")
    assert lake.publish(numbered(1), mode="append").reused
    assert lake.keys() == [1, 2]


def test_what_others_append_is_replaced(lake: DeltaLake) -> None:
    lake.publish(numbered(1))
    write_deltalake(lake.opened, numbered(7), mode="append")
    assert not lake.publish(numbered(1)).reused
    assert lake.keys() == [1]
    lake.opened.optimize.compact()
    lake.opened.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    assert lake.publish(numbered(1)).reused


def test_rows_that_are_gone_are_appended_again(lake: DeltaLake) -> None:
    lake.publish(numbered(1), mode="append")
    lake.opened.delete()
    assert not lake.publish(numbered(1), mode="append").reused
    lake.publish(numbered(2), mode="append")
    lake.opened.optimize.compact()
    lake.opened.delete("k = 2")
    assert lake.publish(numbered(1), mode="append").reused
    assert lake.keys() == [1]


def test_a_restored_version_counts(lake: DeltaLake) -> None:
    first = lake.publish(numbered(1), mode="append").version.number
    second = lake.publish(numbered(2), mode="append").version.number
    lake.opened.restore(first)
    assert lake.publish(numbered(1), mode="append").reused
    assert not lake.publish(numbered(2), mode="append").reused
    assert lake.keys() == [1, 2]
    lake.opened.restore(second)
    assert lake.publish(numbered(2), mode="append").reused


def test_an_empty_result_makes_a_table_without_files(lake: DeltaLake) -> None:
    published = lake.publish(numbered(), mode="append")
    assert (published.num_rows, published.files) == (0, ())
    assert lake.rows() == []
    assert lake.publish(numbered(), mode="append").reused
    lake.publish(numbered(1))
    lake.publish(numbered())
    assert lake.rows() == []


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_partitions_are_replaced(lake: DeltaLake, partition_by: tuple[str, ...]) -> None:
    one, two, three = DAYS
    lake.publish(daily((one, 1), (two, 2)), partition_by=partition_by, **partition(one, two))
    lake.publish(daily((three, 3)), **partition(three))
    assert lake.keys() == [1, 2, 3]
    published = lake.publish(daily((two, 20), (two, 21)), **partition(two))
    assert published.partition_rows == {"2024-01-02": 2}
    assert lake.keys() == [1, 3, 20, 21]
    assert lake.publish(daily((two, 20), (two, 21)), **partition(two)).reused
    lake.publish(daily(), **partition(one, three))
    assert lake.keys() == [20, 21]
    with pytest.raises(PublishError, match="outside of the partitions of this run"):
        lake.publish(daily((three, 9)), **partition(two))


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_at_the_ends_of_windows_are_replaced(lake: DeltaLake, zone: str | None) -> None:
    """Bounds of our own files are exact to the microsecond."""

    def rows(key: int, *moments: dt.datetime) -> pa.Table:
        at = pa.array(moments, pa.timestamp("us", zone))
        return pa.table({"at": at, "k": pa.array([key] * len(moments), pa.int64())})

    def target(day: int) -> dict[str, Any]:
        start = dt.datetime(1969, 12, day, tzinfo=dt.UTC if zone else None)
        window = PartitionWindow(str(day), start, start + dt.timedelta(1))
        keys = {"partition_keys": (str(day),), "partition_column": "at", "windows": (window,)}
        return {"mode": "replace_partition", **keys}

    first, last = dt.datetime(1969, 12, 30), dt.datetime(1969, 12, 30, 23, 59, 59, 999999)
    lake.publish(rows(1, first, last), **target(30))
    lake.publish(rows(2, last + dt.timedelta(microseconds=1)), **target(31))
    lake.publish(rows(3, first), **target(30))
    assert lake.keys() == [2, 3]
    write_deltalake(lake.opened, rows(4, last), mode="append")
    with pytest.raises(PublishError, match="or does not tell; partition the table by 'at'"):
        lake.publish(rows(5, first), **target(30))


def test_a_key_told_by_text_replaces_its_rows(lake: DeltaLake) -> None:
    def rows(*pairs: tuple[str, int]) -> pa.Table:
        return pa.table({"state": [s for s, _ in pairs], "k": [k for _, k in pairs]})

    long = "x" * 40
    target = {"mode": "replace_partition", "partition_column": "state"}
    lake.publish(rows((long, 1), ("b", 2)), partition_keys=(long, "b"), **target)
    lake.publish(rows((f"{long}y", 3)), partition_keys=(f"{long}y",), **target)
    lake.publish(rows((long, 10)), partition_keys=(long,), **target)
    assert lake.keys() == [2, 3, 10]


def test_a_number_as_key_replaces_its_rows(lake: DeltaLake) -> None:
    target = {"mode": "replace_partition", "partition_column": "k"}
    lake.publish(numbered(1, 2, 3, 5), mode="append")
    with pytest.raises(PublishError, match="has rows of the partitions of this run and others"):
        lake.publish(numbered(2), partition_keys=("2",), **target)
    lake.publish(numbered(3), partition_keys=("1", "2", "3", "4", "5"), **target)
    lake.publish(numbered(7), partition_keys=("7", "x"), **target)
    assert lake.keys() == [3, 7]


def test_a_file_with_rows_of_other_partitions_is_refused(lake: DeltaLake) -> None:
    one, two, _ = DAYS
    lake.publish(daily((one, 1)), **partition(one))
    write_deltalake(lake.opened, daily((one, 5), (two, 6)), mode="append")
    with pytest.raises(PublishError, match="has rows of the partitions of this run and others"):
        lake.publish(daily((two, 2)), **partition(two))
    assert lake.keys() == [1, 5, 6]


def test_partition_by_keeps_values(lake: DeltaLake) -> None:
    rows = pa.table(
        {
            "flag": [True, True, None, False],
            "day": pa.array([DAYS[0], None, DAYS[1], dt.date(1, 1, 1)], pa.date32()),
            "at": pa.array([dt.datetime(2024, 1, 1, 1), None, None, None], pa.timestamp("us")),
            "price": pa.array([Decimal("1.50"), None, Decimal("-2.00"), None], pa.decimal128(9, 2)),
            "name": ["a/b=c", "b ", None, "é?#%"],
            "utc": pa.array([None, dt.datetime(1969, 1, 1), None, None], pa.timestamp("us", "UTC")),
            "k": [1, 2, 3, 4],
        }
    )
    names = ("flag", "day", "at", "price", "name", "utc")
    lake.publish(rows, partition_by=names)
    assert sorted(lake.rows(), key=lambda r: r["k"]) == rows.to_pylist()  # UTC equals UTC
    assert len(lake.live_files()) == 4
    for path in lake.live_files():
        assert pq.read_schema(Path(lake.location) / path).names == ["k"]
    assert lake.opened.metadata().partition_columns == list(names)
    found = lake.opened.to_pyarrow_table(filters=[("name", "=", "é?#%")])
    assert found["k"].to_pylist() == [4]
    lake.publish(rows.slice(0, 1), mode="append")  # whatever the table is partitioned by
    with pytest.raises(PublishError, match=r"is partitioned by \(flag, day, .* says \(k\)"):
        lake.publish(rows, partition_by=("k",))
    empty = pa.table({**{n: rows[n][:1] for n in rows.column_names}, "name": [""]})
    with pytest.raises(PublishError, match="an empty text, which Delta tables take for NULL"):
        lake.publish(empty.select(rows.column_names), mode="append")


def test_values_of_every_type_are_kept(lake: DeltaLake) -> None:
    rows = rows_of_every_type(single=math.nan, real=-0.0, text="ü\0", day=dt.date(1, 1, 1))
    lake.publish(rows)
    found = lake.opened.to_pyarrow_table()
    assert {name: repr(found[name].to_pylist()) for name in found.column_names} == {
        name: repr(rows[name].to_pylist()) for name in rows.column_names
    }
    kinds = {f.name: f.type.type for f in lake.opened.schema().fields if hasattr(f.type, "type")}
    assert (kinds["tiny"], kinds["local"], kinds["at"]) == ("byte", "timestamp_ntz", "timestamp")


def test_statistics_rule_files_out_and_never_rows(lake: DeltaLake) -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    rows = pa.table(
        {
            "text": ["a" * 31 + "\ud7ff", "\U0010ffff" * 40, None],
            "cents": pa.array([Decimal("-1.05"), Decimal("7.30"), None], pa.decimal128(15, 2)),
            "wide": pa.array([Decimal(-(10**37)), Decimal(10**37), None], pa.decimal128(38, 0)),
            "real": [math.nan, 1.0, -0.0],
            "at": pa.array([moment, moment, None], pa.timestamp("us", "UTC")),
            "pair": [{"x": 1, "y": [1]}, {"x": None, "y": None}, None],
            "k": pa.array([-(2**63), 0, 2**63 - 1], pa.int64()),
        }
    )
    lake.publish(rows)
    (found,) = statistics(lake)
    assert found == {
        "numRecords": 3,
        "minValues": {
            "cents": -1.05,
            "at": "1969-12-31T23:59:59.999999Z",
            "pair": {"x": 1},
            "k": -(2**63),
        },
        "maxValues": {
            "cents": 7.3,
            "at": "1969-12-31T23:59:59.999999Z",
            "pair": {"x": 1},
            "k": 2**63 - 1,
        },
        "nullCount": {
            "text": 1,
            "cents": 1,
            "wide": 1,
            "real": 0,
            "at": 1,
            "k": 0,
            "pair": {"x": 2},
        },
        "tightBounds": True,
    }


def create(lake: DeltaLake, features: tuple[str, ...] = (), **configuration: str) -> HandmadeTable:
    named = {name.replace("_", "."): value for name, value in configuration.items()}
    return HandmadeTable(Path(lake.location), features, named)


def test_a_table_of_others_is_published_to(lake: DeltaLake) -> None:
    made = create(lake)
    made.schema(field("day", "date"), field("k", "long", nullable=False), partitioned=["day"])
    made.commit(made.data(pa.table({"k": [7]}), {"day": "2024-01-03"}, name="day=2024-01-03/a b.parquet"))  # fmt: skip
    lake.publish(daily((DAYS[0], 1), (DAYS[1], 2)), mode="append")
    lake.publish(daily((DAYS[1], 20)), **partition(DAYS[1]))
    assert lake.keys() == [1, 7, 20]
    nulls = pa.table({"day": pa.array([DAYS[0]]), "k": pa.array([None], pa.int64())})
    with pytest.raises(PublishError, match="column 'k' is required, and a row of the result has"):
        lake.publish(nulls, mode="append")
    with pytest.raises(
        PublishError, match=r"spells the path of day%3D2024-01-03/a%20b\.parquet in"
    ):
        lake.publish(daily((DAYS[2], 3)), **partition(DAYS[2]))
    assert lake.keys() == [1, 7, 20]


K = [field("k", "long")]
USED = [
    (("checkConstraints",), {"delta_constraints_c": "k > 0"}, K, "checkConstraints"),
    ((), {"delta_columnMapping_mode": "name"}, [field("k", "long", id_=1, physical="c")], "columnMapping"),
    (("changeDataFeed",), {"delta_enableChangeDataFeed": "true"}, K, "changeDataFeed"),
    (("rowTracking",), {}, K, "rowTracking"),
    (("inCommitTimestamp",), {"delta_enableInCommitTimestamps": "true"}, K, "inCommitTimestamp"),
    ((), {}, [field("k", "long", **{"delta.invariants": "{}"})], "invariants"),
    ((), {}, [field("k", "long", **{"delta.generationExpression": "1"})], "generatedColumns"),
    ((), {}, [field("k", "long", **{"delta.identity.start": 1})], "identityColumns"),
]  # fmt: skip


@pytest.mark.parametrize(("features", "configuration", "columns", "named"), USED)
def test_features_that_are_used_are_refused_by_name(
    lake: DeltaLake,
    features: tuple[str, ...],
    configuration: dict[str, str],
    columns: list[Any],
    named: str,
) -> None:
    made = create(lake, features, **configuration)
    made.schema(*columns)
    for entry in made._pending:  # writer features alone
        if "protocol" in entry and "readerFeatures" in entry["protocol"]:
            entry["protocol"]["readerFeatures"] = []
    made.commit(made.data(pa.table({"k": [1]})))
    with pytest.raises(PublishError, match=f"uses the Delta writer feature '{named}', which is"):
        lake.publish(pa.table({"k": [2]}))
    assert lake.opened.version() == 0
    assert len(lake.data_files()) == 1


def test_a_table_that_only_takes_rows(lake: DeltaLake) -> None:
    made = create(lake, (), delta_appendOnly="true", delta_enableChangeDataFeed="true")
    made.schema(*K)
    made.commit(made.data(pa.table({"k": [1]})))
    lake.publish(pa.table({"k": [2]}), mode="append")
    assert sorted(lake.opened.to_pyarrow_table()["k"].to_pylist()) == [1, 2]
    lake.opened.alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
    with pytest.raises(PublishError, match=r"only takes more rows .*; use mode append"):
        lake.publish(pa.table({"k": [3]}))


def test_deletion_vectors_of_others(lake: DeltaLake) -> None:
    made = create(lake, ("deletionVectors",))
    made.schema(*K)
    add = made.data(pa.table({"k": [1, 2, 3]}))
    made.commit(add)
    made.delete(add, [1])
    lake.publish(pa.table({"k": [4]}), mode="append")
    assert lake.keys() == [1, 3, 4]
    target = {"mode": "replace_partition", "partition_column": "k"}
    keys = ("1", "2", "3")
    with pytest.raises(PublishError, match="has a deletion vector, and deltalake cannot remove"):
        lake.publish(pa.table({"k": [3]}), partition_keys=keys, **target)
    lake.publish(pa.table({"k": [5]}), partition_keys=("4", "5"), **target)
    assert lake.keys() == [1, 3, 5]
    lake.publish(pa.table({"k": [9]}))
    assert lake.keys() == [9]


def test_what_does_not_fit_a_table_is_refused(lake: DeltaLake) -> None:
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
    assert lake.keys() == [1]


def test_required_members_are_refused(lake: DeltaLake) -> None:
    made = create(lake)
    made.schema(field("pair", struct(field("x", "long", nullable=False))))
    made.commit(made.data(pa.table({"pair": [{"x": 1}]})))
    with pytest.raises(PublishError, match=r"'pair\.x' is required, which is not checked"):
        lake.publish(pa.table({"pair": [{"x": 1}]}), mode="append")


@pytest.mark.parametrize(
    ("name", "dtype", "partition_by", "problem"),
    [
        ("c", "interval day to second", (), "an interval"),
        ("c", "void", (), "NULL without a type"),
        ("a b", "int", (), "has ' ' in its name, which Delta tables without column mapping"),
        ("c", "struct<`x,y`: int>", (), r"column 'c\.x,y' has ',' in its name"),
        ("c", "double", ("c",), "partition_by names 'c', which is double"),
        ("c", "int", ("c",), "partition_by names all columns"),
    ],
)
def test_columns_that_delta_lacks_are_refused(
    name: str, dtype: str, partition_by: tuple[str, ...], problem: str
) -> None:
    from stagecoach.infra.publishing.check import check_publishable

    with pytest.raises(PublishError, match=problem):
        check_publishable([Field(name, parse_column_type(dtype))], partition_by, "delta")


@pytest.mark.parametrize(
    ("location", "problem"),
    [
        (None, "give output.location: the folder of the Delta table"),
        ("gs://bucket/t", "are read from local folders and from s3://"),
        ("a%b", "opens no table with '%' in its path"),
        ("s3://key:secret@bucket/t", "has credentials in it"),
    ],
)
def test_places_that_are_refused(location: object, problem: str) -> None:
    from stagecoach.infra.formats.delta.output import output_location

    with pytest.raises(OutputError, match=problem):
        output_location(location, "")
    assert output_location("lake/daily/", "/work") == "/work/lake/daily"
    assert output_location("s3a://lake/daily", "/work") == "s3://lake/daily"
