"""What planning asks of deduplicated tables."""

from __future__ import annotations

from stagecoach.planner.catalog import ScanAbilities, TableInfo
from stagecoach.planner.formats.deduplicated.read_size import read_bytes
from stagecoach.planner.formats.protocol import Filters, PlannerFormat
from stagecoach.planner.plan.physical import ScanExec


class DeduplicatedFormat(PlannerFormat):
    """Filters leave out chunks, and the newest chunks are read first for the first rows by time."""

    takes = ScanAbilities(first_rows=True)

    def read_bytes(self, info: TableInfo, scan: ScanExec, filters: Filters) -> float | None:
        """Estimate the bytes of chunks that the filters do not rule out."""
        return read_bytes(info, scan, filters())


FORMAT = DeduplicatedFormat()
