"""A table format whose rows are in memory: what a contributor writes, on one page.

Its tables have versions and a writer. Each batch is a unit with bounds, which filters may leave
out, and deletes. Columns are stored by their ids, so that they can be renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.file_scan import FileScan
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.units import ScanSlice
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.deletes import UnitDeletes
from stagecoach.infra.reading.format_input import UnitsInput
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field, parse_type

COLUMNS = (Field("k", parse_type("bigint")), Field("name", parse_type("string")))
IDS = (1, 2)
DELETED: dict[str, tuple[int, ...]] = {}
VERSIONS: dict[str, list[tuple[str, tuple[pa.RecordBatch, ...]]]] = {}


@dataclass(frozen=True)
class MemoryTable(Table):
    name: str

    def state(self, version: int | None = None) -> TableState:
        versions = VERSIONS.get(self.name, [])
        if not 0 <= (version or 0) <= len(versions):
            raise CatalogError(f"table '{self.name}' has no version {version}")
        batches = [batch for _, added in versions[:version] for batch in added]
        files = tuple(self._file(i, batch) for i, batch in enumerate(batches))
        stats = TableStats(sum(b.num_rows for b in batches), sum(b.nbytes for b in batches))
        info = TableInfo(self.name, COLUMNS, stats, format="memory")
        rows = [batch.to_pydict() for batch in batches]
        kept: dict[str, Any] = {"table": self.name, "columns": COLUMNS, "format": "memory"}
        return TableState(info, TableSnapshot(files=files, field_ids=IDS, detail=rows, **kept))

    def entries(self) -> tuple[FileEntry, ...]:
        version = str(len(VERSIONS.get(self.name, [])))
        return (FileEntry(uri=f"memory:{self.name}", num_bytes=0, version=version),)

    def writer(self, token: str) -> MemoryWriter:
        return MemoryWriter(self.name, token)

    def _file(self, place: int, batch: pa.RecordBatch) -> DataFile:
        ends = [pc.min_max(batch[str(number)]).as_py() for number in IDS]
        uri = f"memory:{self.name}/{place}"
        return DataFile(
            uri=uri,
            num_bytes=batch.nbytes,
            version="",
            num_rows=batch.num_rows,
            row_groups=(batch.num_rows,),
            footer_checksum="",
            bounds=tuple((0, end["min"], end["max"]) for end in ends),
            deletes=UnitDeletes(DELETED[uri]) if uri in DELETED else None,
        )


@dataclass
class MemoryWriter:
    name: str
    token: str
    staged: list[pa.RecordBatch] = field(default_factory=list)

    def stage(self, rows: pa.RecordBatch) -> int:
        self.staged.append(rows.rename_columns([str(number) for number in IDS]))
        return rows.num_rows

    def publish(self) -> int:
        versions = VERSIONS.setdefault(self.name, [])
        if self.token not in (token for token, _ in versions):
            versions.append((self.token, tuple(self.staged)))
        return len(versions)

    def discard(self) -> None:
        self.staged.clear()


class MemoryInput(UnitsInput):
    def read(self, unit: DataFile, note: str) -> Iterator[pa.RecordBatch]:
        batch = pa.RecordBatch.from_pydict(json.loads(note))
        rows = batch.slice(unit.row_start, unit.row_end - unit.row_start)
        rows = unit.deletes.kept(rows, unit.row_start) if unit.deletes else rows
        arrays = [rows[str(c.field_id)] for c in self.columns]
        yield pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns])


class MemoryScan(FileScan):
    def bind(self, share: ScanSlice) -> MemoryInput:
        rows = {f.uri: r for f, r in zip(self.table.files, self.table.detail, strict=True)}
        notes = tuple(json.dumps(rows[part.uri]) for part in share.units)
        return MemoryInput(self.columns, self.file_rows(share), notes)


class MemoryFormat(TableFormat):
    name = "memory"

    def open(self, source: TableSource, access: Access) -> Table:
        return MemoryTable(source.name)

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        return MemoryScan(request, table)


FORMAT = MemoryFormat()
