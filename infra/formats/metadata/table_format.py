"""Metadata tables as a table format: their rows are in the run's snapshot.

They are in no catalog file. A catalog makes one for a name such as `orders.files`, of what
`Table.metadata` of `orders` offers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagecoach.infra.formats.metadata.inputs import MetadataInput
from stagecoach.infra.formats.protocol import Access, ScanPlan, Table, TableFormat, TableSource
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot, TableState
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.catalog import TableInfo, TableStats
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import Field, from_arrow

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class MetadataScan:
    """A scan of a metadata table, planned: one unit with all rows."""

    request: ScanRequest
    table: TableSnapshot

    @cached_property
    def units(self) -> Sequence[ScanUnit]:
        """All rows."""
        stored, size = self.table.detail
        return [ScanUnit(self.table.table, ((size, len(stored)),))] if size else []

    def bind(self, share: ScanSlice) -> MetadataInput:
        """Return the rows, for a task that reads any."""
        stored, size = self.table.detail
        if not share.units:
            return MetadataInput(self.request.columns)
        return MetadataInput(self.request.columns, stored, size)


class MetadataFormat(TableFormat):
    """Rows about other tables."""

    name = "metadata"

    def open(self, source: TableSource, access: Access) -> Table:
        """Refuse: a metadata table belongs to a table."""
        raise CatalogError(f"table {source.name!r}: metadata tables are in no catalog file")

    def state_of(self, name: str, rows: pa.Table) -> TableState:
        """Return a metadata table with these rows."""
        from stagecoach.infra.formats.metadata.inputs import packed

        columns = tuple(Field(f.name, from_arrow(f.type)) for f in rows.schema)
        text = packed(rows)
        info = TableInfo(name, columns, TableStats(rows.num_rows, len(text)), format=self.name)
        detail = [text, rows.num_rows]
        return TableState(
            info,
            TableSnapshot(table=name, columns=columns, files=(), format=self.name, detail=detail),
        )

    def plan_scan(self, request: ScanRequest, table: TableSnapshot) -> ScanPlan:
        """Read all rows."""
        return MetadataScan(request, table)

    def scanned(
        self, request: ScanRequest | None, table: TableSnapshot
    ) -> Sequence[Sequence[object]]:
        """Return a hash of the rows."""
        return [[hashlib.sha256(table.detail[0].encode()).hexdigest()]]


FORMAT = MetadataFormat()
