"""The format of `memory_format` with all that a table may offer besides being read.

Its tables can be appended to, compacted, shown, verified and cleaned up by commands and jobs that
know nothing of them. `BoxFormat` is one of tables that queries make.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from stagecoach.infra.formats.capabilities import (
    TARGET_ROWS,
    Adopted,
    CompactionReport,
    ExpiryRule,
    ShownFiles,
    TableShape,
)
from stagecoach.infra.formats.protocol import Access, Table, TableSource
from stagecoach.infra.formats.publishing import (
    PublishedPart,
    PublishTarget,
    StagedGoneError,
    WritePlan,
)
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.staged_version import StagedVersion
from stagecoach.infra.formats.stored import RootExpiry, StoredFormat, StoredTable
from stagecoach.infra.integrity.findings import Check, Outcome, StoredDamage
from stagecoach.infra.storage.listing import list_objects
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field
from tests.infra.formats.memory_format import (
    COLUMNS,
    VERSIONS,
    MemoryFormat,
    MemoryScan,
    MemoryTable,
)

REPLACED: dict[str, list[str]] = {}
DAMAGED: set[str] = set()
WAITING: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class KeptExpired:
    table_name: str
    uris: tuple[str, ...] = ()
    num_versions: int = 0
    num_bytes: int = 0

    @property
    def num_objects(self) -> int:
        return len(self.uris)

    @property
    def counts(self) -> Mapping[str, int]:
        return {"replaced batches": len(self.uris)}

    @property
    def metadata(self) -> Mapping[str, int]:
        return {"removed_batches": len(self.uris)}

    @property
    def is_empty(self) -> bool:
        return not self.uris

    def without(self, pinned_uris: Collection[str]) -> KeptExpired:
        return replace(self, uris=tuple(uri for uri in self.uris if uri not in pinned_uris))

    def remove(self) -> None:
        REPLACED[self.table_name] = [u for u in REPLACED[self.table_name] if u not in self.uris]


@dataclass(frozen=True)
class KeptAppended:
    version: Any
    num_rows: int
    num_files: int
    added_columns: tuple[Field, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class KeptVersion:
    table: str
    number: int


@dataclass(frozen=True)
class KeptTable(MemoryTable):
    """All capabilities in one object."""

    file_noun = "slab"
    file_kinds = ("memory",)
    is_local = True

    def expires(self) -> KeptTable:
        return self

    def verifies(self) -> KeptTable:
        return self

    def appends(self) -> KeptTable:
        return self

    def compacts(self) -> KeptTable:
        return self

    def shows_files(self) -> KeptTable:
        return self

    def find_expired(self, rule: ExpiryRule) -> KeptExpired:
        return KeptExpired(self.name, tuple(REPLACED.get(self.name, ()))).without(rule.pinned_uris)

    def checks(self) -> Iterator[Check]:
        for file in self.state().snapshot.files:
            known = StoredDamage(uri=file.uri, problem="lost", remedy="append it", table=self.name)
            damages = [known] if file.uri in DAMAGED else []
            yield Check(kind="batches", known=known, run=lambda d=damages: Outcome(damages=d))

    def adopt_checksums(self) -> Adopted | None:
        return None

    def create(self, columns: tuple[Field, ...]) -> int:
        VERSIONS[self.name] = []
        return len(COLUMNS)

    def columns_of(self, file: str, options: StorageOptions) -> tuple[Field, ...]:
        return COLUMNS

    def append(self, items: Sequence[object], **options: Any) -> KeptAppended:
        writer = self.writer(f"token-{len(VERSIONS.get(self.name, ()))}")
        rows = [pa.RecordBatch.from_pylist(json.loads(str(item))) for item in items]
        count = sum(writer.stage(batch) for batch in rows)
        return KeptAppended(KeptVersion(self.name, writer.publish()), count, len(rows))

    def has_data(self) -> bool:
        return bool(VERSIONS.get(self.name))

    def compact(self, *, target_rows: int = TARGET_ROWS) -> CompactionReport:
        before = self._shape()
        batches = [batch for _, added in VERSIONS[self.name] for batch in added]
        REPLACED[self.name] = [file.uri for file in self.state().snapshot.files[1:]]
        VERSIONS[self.name] = [
            ("merged", tuple(pa.Table.from_batches(batches).combine_chunks().to_batches()))
        ]
        return CompactionReport(
            table=self.name, version=1, before=before, after=self._shape(), merged=1
        )

    def _shape(self) -> TableShape:
        files = self.state().snapshot.files
        rows = sum(file.num_rows for file in files)
        return TableShape(num_files=len(files), rows=rows, num_bytes=0, overlap_share=0.0)

    def shown_files(self) -> ShownFiles:
        uris = [file.uri for file in self.state().snapshot.files]
        return ShownFiles(tuple(uris), {"uris": uris})


class KeptFormat(MemoryFormat):
    name = "kept"
    file_kind = "memory"
    written_as = "'kind: kept'"

    def open(self, source: TableSource, access: Access) -> Table:
        return KeptTable(source.name)


FORMAT = KeptFormat()


@dataclass(frozen=True)
class BoxVersion:
    table: str
    number: int
    num_rows: int
    committed_at: str = "2024-01-31T00:00:00Z"
    mode: str = "replace"
    run_id: str = ""
    columns: tuple[Field, ...] = COLUMNS
    has_data: bool = True
    num_bytes: int = 0
    num_files: int = 1
    partition_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class BoxTable(StoredTable):
    """A table that is one object with the number of its rows, for each version."""

    store: ObjectStore
    name: str
    found: dict[str, Any] = field(default_factory=dict)
    format_name = "box"

    @property
    def location(self) -> str:
        return self.store.uri(f"boxes/{self.name}")

    uri = location

    def current(self) -> BoxVersion | None:
        return next(iter(self.kept_versions()), None)

    def kept_versions(self) -> list[BoxVersion]:
        keys = sorted(self.store.list(f"boxes/{self.name}"), reverse=True)
        numbers = [int(key.rsplit("/", 1)[1]) for key in keys if key[-1].isdigit()]
        return [
            BoxVersion(self.name, n, int(self.store.read_bytes(f"boxes/{self.name}/{n}")))
            for n in numbers
        ]

    def state_of(self, version: Any) -> TableState:
        info = TableInfo(self.name, COLUMNS, TableStats(version.num_rows, 0), format="box")
        return TableState(
            info, TableSnapshot(table=self.name, columns=COLUMNS, files=(), format="box")
        )

    def state(self, version: int | None = None) -> TableState:
        found = self.current()
        if found is None:
            raise CatalogError(f"table '{self.name}' is empty")
        return self.state_of(found)

    def entries(self) -> tuple[FileEntry, ...]:
        return ()

    @property
    def waiting(self) -> dict[str, tuple[StagedVersion, tuple[BoxFile, ...]]]:
        """What is staged, by its identity; of this process only."""
        return WAITING.setdefault(self.location, {})

    def staged(self) -> list[StagedVersion]:
        return [version for version, _ in self.waiting.values()]

    def staged_state(self, staged_id: str) -> TableState:
        if staged_id not in self.waiting:
            raise self.not_staged(staged_id)
        rows = self.waiting[staged_id][0].num_rows
        return self.state_of(BoxVersion(self.name, len(self.kept_versions()) + 1, rows))

    def publish_staged(self, staged_id: str) -> BoxVersion:
        if staged_id not in self.waiting:
            raise self.not_staged(staged_id)
        return self.put(self.waiting.pop(staged_id)[0].num_rows)

    def discard_staged(self, staged_id: str) -> None:
        self.waiting.pop(staged_id, None)

    def put(self, rows: int) -> BoxVersion:
        version = BoxVersion(self.name, len(self.kept_versions()) + 1, rows)
        self.store.write_bytes(f"boxes/{self.name}/{version.number}", str(rows).encode())
        return version

    def clear(self) -> BoxVersion:
        return self.put(0)


@dataclass(frozen=True)
class BoxPlan(WritePlan):
    """A file is an object with the number of its rows."""

    table: str
    target_bytes: int = 0

    def sized(self, target_bytes: int) -> BoxPlan:
        return replace(self, target_bytes=target_bytes)

    def write_reported(
        self,
        store: ObjectStore,
        batches: Iterable[pa.RecordBatch],
        *,
        task_index: int,
        attempt: int,
        writes_empty: bool,
    ) -> list[dict[str, Any]]:
        return [{"num_rows": sum(batch.num_rows for batch in batches), "num_bytes": 1}]

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BoxPlan:
        return cls(**values)


@dataclass(frozen=True)
class BoxFile:
    num_rows: int
    num_bytes: int


@dataclass
class BoxWriter:
    box: BoxTable
    plan: BoxPlan
    fingerprint: str
    reused: bool = False
    adopted: bool = False
    waits: bool = False
    files: list[BoxFile] = field(default_factory=list)

    @property
    def version(self) -> BoxVersion:
        found = self.box.current()
        assert found is not None
        return found

    def find_published(self) -> BoxVersion | None:
        return None

    def add(self, written: Iterable[Mapping[str, Any]]) -> None:
        self.files += [BoxFile(**values) for values in written]

    def find_staged(self) -> StagedVersion | None:
        found = self.box.waiting.get(self.fingerprint)
        if found is None:
            return None
        self.files, self.waits = list(found[1]), True
        return found[0]

    def stage_commit(self) -> StagedVersion | None:
        version = StagedVersion(
            table=self.box.name,
            id=self.fingerprint,
            staged_at="2024-01-31T00:00:00Z",
            mode="replace",
            fingerprint=self.fingerprint,
            rows={None: sum(file.num_rows for file in self.files)},
        )
        self.box.waiting[version.id] = (version, tuple(self.files))
        self.waits = True
        return version

    def publish(self) -> int:
        if self.waits and self.box.waiting.pop(self.fingerprint, None) is None:
            raise StagedGoneError(f"{self.fingerprint} is not staged any more")
        return self.box.put(sum(file.num_rows for file in self.files)).number

    def part_of(self, version: Any) -> PublishedPart:
        return PublishedPart(files=tuple(self.files), partition_rows={None: version.num_rows})


class BoxFormat(StoredFormat):
    name = "box"
    folder = "boxes"

    def open(self, source: TableSource, access: Access) -> Table:
        raise CatalogError("a box is in no catalog file")

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> MemoryScan:
        return MemoryScan(request, table)

    def stored(self, store: ObjectStore, name: str, access: Access) -> BoxTable:
        return BoxTable(store, name)

    def check_columns(self, columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
        return None

    def result_writer(
        self,
        store: ObjectStore,
        target: PublishTarget,
        columns: Sequence[Field],
        *,
        fingerprint: str,
        run_id: str,
    ) -> BoxWriter:
        return BoxWriter(BoxTable(store, target.table), BoxPlan(target.table), fingerprint)

    def find_expired(self, store: ObjectStore, rule: ExpiryRule, orphan_limit: Any) -> RootExpiry:
        loose = [item for item in list_objects(store, "boxes") if item.key.endswith("/lost")]
        return RootExpiry(orphans=tuple(loose))


BOXES = BoxFormat()
