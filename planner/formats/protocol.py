"""The planner's half of a table format: pure, without I/O.

It says what a scan may take over from the operators above it, and how much a scan reads. The
defaults suit most formats, which need no half here. A format with more to say derives a class, and
`stagecoach.planner.formats.registry` finds it by the format's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stagecoach.planner.catalog import ScanAbilities, TableInfo
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.physical import ScanExec

Filters = Callable[[], Sequence[Expression]]
"""Gives the conjuncts right above a scan; finding them takes a walk through the plan."""


class PlannerFormat:
    """What planning asks of a format."""

    takes: ScanAbilities = ScanAbilities()
    """What a scan may take over from the operators above it."""

    def read_bytes(self, info: TableInfo, scan: ScanExec, filters: Filters) -> float | None:
        """Estimate how many stored bytes a scan reads.

        Args:
            info: The table.
            scan: The scan.
            filters: Filters right above it.

        Returns:
            The bytes; None if it may read all files of the table.
        """
        return None
