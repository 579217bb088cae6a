"""Outputs of head stages, made from Arrow tables, for tests of published tables."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.version import TableVersion
from stagecoach.infra.publishing.publish import (
    Published,
    PublishTarget,
    Staged,
    publish,
    stage,
)
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.types import Field, from_arrow
from tests.stage_outputs import commit_files, write_map_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = EngineSettings(parallelism=2)


def no_spark() -> SparkSession:
    raise AssertionError("a Spark session was asked for")


def head_output(store: ObjectStore, parts: Sequence[pa.Table], name: str = "") -> Manifest:
    """A committed stage with one map file for each table; its identity is `name` and the rows."""
    numbered = [p.rename_columns([f"c{i}" for i in range(p.num_columns)]) for p in parts]
    schema = numbered[0].schema
    text = name + repr([part.to_pydict() for part in parts])
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    files = [
        write_map_file(
            store, fingerprint, part.to_batches(max_chunksize=10_000), schema, task=index
        )
        for index, part in enumerate(numbered)
    ]
    return commit_files(store, fingerprint, files, schema, created_at="2026-01-01T00:00:00Z")


def rows_of_every_type(*, single: float, real: float, text: str, day: datetime.date) -> pa.Table:
    """A row of values at some edge of each type, of which not every reader has all, and one NULL."""
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
    return pa.table(
        {
            "flag": pa.array([True, None]),
            "tiny": pa.array([-128, None], pa.int8()),
            "small": pa.array([32767, None], pa.int16()),
            "whole": pa.array([-(2**31), None], pa.int32()),
            "big": pa.array([2**63 - 1, None], pa.int64()),
            "single": pa.array([single, None], pa.float32()),
            "real": pa.array([real, None], pa.float64()),
            "text": pa.array([text, None]),
            "bytes": pa.array([b"\0\xff", None], pa.binary()),
            "day": pa.array([day, None], pa.date32()),
            "at": pa.array([moment, None], pa.timestamp("us", tz="UTC")),
            "local": pa.array([moment, None], pa.timestamp("us")),
            "cents": pa.array([Decimal("-1.05"), None], pa.decimal128(5, 2)),
            "wide": pa.array([Decimal(10**38 - 1), None], pa.decimal128(38, 0)),
            "list": pa.array([[1, None], None], pa.list_(pa.field("element", pa.int32()))),
            "map": pa.array([[("a", 1), ("b", None)], None], pa.map_(pa.string(), pa.int32())),
            "pair": pa.array(
                [{"x": 1, "y": [None]}, None],
                pa.struct([("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.string())))]),
            ),
        }
    )


def fields_of(table: pa.Table) -> tuple[Field, ...]:
    return tuple(Field(f.name, from_arrow(f.type)) for f in table.schema)


def publish_rows(
    store: ObjectStore,
    rows: pa.Table | Sequence[pa.Table],
    table: str = "t",
    *,
    columns: Sequence[Field] | None = None,
    name: str = "",
    run_id: str = "",
    **target: Any,
) -> Published:
    """Publish rows as the output of a head stage; small, so this process writes them."""
    parts = [rows] if isinstance(rows, pa.Table) else list(rows)
    return publish(
        head_output(store, parts, name),
        columns or fields_of(parts[0]),
        PublishTarget(table=table, **target),
        store=store,
        settings=SETTINGS,
        spark=no_spark,
        run_id=run_id,
    )


def stage_rows(
    store: ObjectStore, rows: pa.Table, table: str = "t", *, run_id: str = "", **target: Any
) -> Staged | Published:
    """Stage rows as the output of a head stage."""
    return stage(
        head_output(store, [rows]),
        fields_of(rows),
        PublishTarget(table=table, **target),
        store=store,
        settings=SETTINGS,
        spark=no_spark,
        run_id=run_id,
    )


def paths_of(store: ObjectStore, version: TableVersion) -> list[str]:
    return [store.uri(key) for key in version.file_keys()]


def read_rows(store: ObjectStore, version: TableVersion) -> list[dict[str, Any]]:
    """The rows of the files of a version, without partition columns, in file order."""
    rows: list[dict[str, Any]] = []
    for path in paths_of(store, version):
        rows += pq.ParquetFile(path).read().to_pylist()
    return rows


def objects_in(store: ObjectStore, prefix: str = "results") -> set[str]:
    return set(store.list(prefix))


def folder_of(store: ObjectStore, table: str = "t") -> Path:
    return Path(store.uri(paths.table_prefix(table)))
