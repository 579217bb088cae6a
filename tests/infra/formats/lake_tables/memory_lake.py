"""A lake in the store of a search over interleavings: a log of versions, each put if absent.

lake/000003.json    the commits up to version 3, newest first, each with the files that it left
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.lake_tables.publications import (
    LakeVersion,
    PastCommit,
    Publication,
)
from stagecoach.infra.formats.lake_tables.staging_writer import StagingLakeWriter
from stagecoach.infra.formats.lake_tables.stored_table import LakeTable
from stagecoach.infra.formats.lake_tables.write_plan import LakePlan
from stagecoach.infra.formats.lake_tables.writer import AddedFile
from stagecoach.infra.formats.protocol import Access, TableSource
from stagecoach.infra.formats.publishing import PublishTarget
from stagecoach.infra.formats.result_files import WrittenParquet
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.stored_version import StoredVersion
from stagecoach.infra.formats.table_places import write_place
from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.planner.types import INT, Field

FOLDER, TABLE, DATA = "memory", "t", "data"
COLUMNS = (Field("a", INT),)
PLACE = {"location": "lake"}

Commit = Mapping[str, Any]
Versions = list[Commit]


class Below(FsspecStore):
    """A folder of a store in memory."""

    def __init__(self, store: Any, folder: str) -> None:
        self.store, self.folder = store, folder  # of the parent only its class, as of `World`

    def uri(self, key: str) -> str:
        return str(self.store.uri(f"{self.folder}/{key}"))

    def list(self, prefix: str) -> Iterator[str]:
        for key in self.store.list(self.folder):
            yield key.removeprefix(f"{self.folder}/")

    def list_details(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, details in self.store.list_details(self.folder):
            yield key.removeprefix(f"{self.folder}/"), details

    def delete(self, keys: Sequence[str]) -> None:
        self.store.delete([f"{self.folder}/{key}" for key in keys])


def read_lake(store: Any) -> Versions:
    """The commits of the lake, newest first."""
    newest = max(store.list("lake"), default=None)
    return [] if newest is None else list(json.loads(store.read_bytes(newest)))


def write_lake(store: Any, known: Versions, commit: Commit) -> bool:
    """Commit one more version; whether nobody was first."""
    text = json.dumps([commit, *known], sort_keys=True).encode()
    return bool(store.put_if_absent(f"lake/{len(known) + 1:06}.json", text))


@dataclass(frozen=True, kw_only=True)
class MemoryPlan(LakePlan):
    @property
    def stored(self) -> pa.Schema:
        return pa.schema([("a", pa.int32())])

    def described(self, file: WrittenParquet) -> dict[str, Any]:
        return {}


class MemoryWriter(StagingLakeWriter[Versions, Commit]):
    folder = FOLDER

    def _check_columns(self) -> None:
        return None

    def _find_table(self) -> Versions | None:
        return read_lake(self._store)

    def _created(self) -> Versions:
        raise AssertionError("the table is there")

    def _check_fits(self, table: Versions) -> None:
        return None

    def _check_removable(self, table: Versions) -> None:
        return None

    def _new_plan(self, table: Versions, token: str) -> LakePlan:
        columns = self._columns
        return MemoryPlan(
            table=TABLE, location=f"{DATA}/{token}", token=token, columns=columns, trees=()
        )

    def _newest(self, table: Versions) -> int | None:
        return len(table)

    def _snapshot_of(self, table: Versions) -> TableSnapshot:
        raise AssertionError("no merge is part of the search")

    def _state_with(self, table: Versions) -> TableState:
        raise AssertionError("no rows are part of the search")

    def _try(self, table: Versions) -> bool:
        added = [str(values["path"]) for values in self._described]
        kept = table[0]["files"] if table and self._target.mode == "append" else []
        ours = self._published.properties()
        return write_lake(
            self._store, table, {"ours": ours, "added": added, "files": [*kept, *added]}
        )

    def _find(self, table: Versions) -> Commit | None:
        return self._find_in(
            lambda: (PastCommit(commit=c, ours=Publication.of(c["ours"])) for c in table)
        )

    def _publication_of(self, commit: Commit) -> Publication | None:
        return Publication.of(commit["ours"])

    def _version_of(self, table: Versions, commit: Commit) -> LakeVersion:
        return version_of(table, commit)

    def _number_of(self, commit: Commit) -> int:
        return 0

    def _added(self, table: Versions, commit: Commit) -> tuple[AddedFile, ...]:
        return tuple(AddedFile(path, 1, 10) for path in commit["added"])


def version_of(table: Versions, commit: Commit) -> LakeVersion:
    return LakeVersion(
        table=TABLE,
        number=len(table),
        committed_at="2026-01-01T00:00:00Z",
        mode="",
        run_id="",
        columns=COLUMNS,
        has_data=True,
        num_rows=0,
        num_bytes=0,
        num_files=0,
    )


@dataclass(frozen=True)
class MemoryLake(LakeTable):
    """The table as commands open it."""

    format_name = folder = FOLDER

    def source_of(self, place: Mapping[str, Any]) -> TableSource:
        return TableSource(name=self.name, location=place["location"], format=FOLDER)

    def is_lost(self, token: str, location: str) -> bool:
        found = read_lake(self.store)
        return not any(path.startswith(f"{location}/") for c in found for path in c["files"])

    @property
    def uri(self) -> str:
        return "lake"

    def current(self) -> StoredVersion | None:
        found = read_lake(self.store)
        return version_of(found, found[0]) if found else None

    def kept_versions(self) -> Sequence[StoredVersion]:
        return ()

    def clear(self) -> StoredVersion:
        raise AssertionError("nobody clears the table")


def opened(store: Any) -> MemoryLake:
    """The table of a store."""

    def never(source: TableSource, access: Access) -> Any:
        raise AssertionError("no rows are part of the search")

    return MemoryLake(store, TABLE, Access(), never, lambda: MemoryWriter)


def target_of(mode: Any) -> PublishTarget:
    return PublishTarget(table=TABLE, place=PLACE, mode=mode)


def write_first(store: Any) -> None:
    """Make the table, without rows."""
    write_place(store, FOLDER, TABLE, PLACE)
