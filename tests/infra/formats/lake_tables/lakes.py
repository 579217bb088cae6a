"""A lake of each format, for tests of what formats of lakes have in common."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from stagecoach.infra.formats.snapshot import TableState
from stagecoach.infra.publishing.publish import Published, Staged
from stagecoach.infra.upkeep.gc import collect_garbage
from tests.infra.formats.delta import lake as delta
from tests.infra.formats.iceberg import lake as iceberg

FORMATS = ("iceberg", "delta")


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def target_of(mode: str, *keys: int) -> dict[str, Any]:
    """Rows with these keys, which are also those of their partitions and of a merge."""
    target: dict[str, Any] = {"mode": mode}
    if mode == "replace_partition":
        target |= {"partition_keys": tuple(map(str, keys)), "partition_column": "k"}
    elif mode == "merge":
        target["key"] = ("k",)
    return target


def keys_in(state: TableState) -> list[int]:
    """The keys in the files of a state, sorted."""
    files = state.snapshot.files
    return sorted(k for f in files for k in pq.ParquetFile(f.uri).read()["k"].to_pylist())


@dataclass(frozen=True)
class AnyLake:
    """A lake of one of the formats.

    Args:
        lake: It.
        format: Its name.
    """

    lake: Any
    format: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lake, name)

    def stage_keys(self, mode: str, *keys: int, **more: Any) -> Staged:
        staged = self.lake.stage(rows(*keys), **{**target_of(mode, *keys), **more})
        assert isinstance(staged, Staged)
        return staged

    def publish_keys(self, mode: str, *keys: int) -> Published:
        published = self.lake.publish(rows(*keys), **target_of(mode, *keys))
        assert isinstance(published, Published)
        return published

    def num_versions(self) -> int:
        """Versions of the table as other tools count them."""
        if self.format == "delta":
            return int(self.lake.opened.version()) + 1
        return len(self.lake.opened.snapshots())

    def named_files(self) -> set[str]:
        """Names of the files that some version has."""
        if self.format == "iceberg":
            paths = self.lake.opened.inspect.all_files()["file_path"].to_pylist()
            return {path.split("/data/")[1] for path in paths}
        found: set[str] = set()
        for version in range(self.lake.opened.version() + 1):
            table = DeltaTable(self.lake.location, version=version)
            found |= set(pa.table(table.get_add_actions())["path"].to_pylist())
        return found

    def alter(self) -> None:
        """Give the table another column, with another tool."""
        if self.format == "iceberg":
            from pyiceberg.types import StringType

            with self.lake.opened.update_schema() as schema:
                schema.add_column("more", StringType())
        else:
            new = rows(0).slice(0, 0).append_column("more", pa.array([], pa.string()))
            write_deltalake(self.lake.opened, new, mode="append", schema_mode="merge")

    def collect(self) -> Any:
        later = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
        return collect_garbage(self.lake.store, older_than=dt.timedelta(0), now=later)

    def log_records(self) -> list[str]:
        """Records of what was staged over time."""
        folder = self.lake.stored.staged_log.versions.folder
        return list(self.lake.store.list(f"{folder}/versions"))


def make_lake(name: str, folder: Path) -> AnyLake:
    """A lake of a format in a local folder."""
    return AnyLake({"iceberg": iceberg, "delta": delta}[name].local_lake(folder), name)
