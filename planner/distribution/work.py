"""Estimate how long a task engine computes a plan: seconds of one core.

The constants are those of DuckDB on TPC-H at scale factor 10, fitted to its times on one task
(`docs/measurements.md`). They are shipped and not measured anew, because a plan must not depend on
the machine that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stagecoach.planner.plan.physical import (
    AggregateExec,
    HashJoinExec,
    PhysicalPlan,
    ScanExec,
    SortExec,
)

_SCANNED_BYTE = 0.55e-9  # of the columns in memory
_BUILD_ROW = 150e-9
_PROBE_ROW = 26e-9
_JOINED_ROW = 26e-9
_GROUPED_ROW = 52e-9
_GROUP = 70e-9
_SORTED_ROW = 1.2e-6


Sizer = Callable[[PhysicalPlan], tuple[float, float]]
"""Estimated rows and bytes of an operator."""


def work_seconds(operators: Iterable[PhysicalPlan], size: Sizer) -> float:
    """Seconds that one core takes for some operators of a plan; equal ones are computed once."""
    return sum(_operator_seconds(node, size) for node in dict.fromkeys(operators))


def _operator_seconds(node: PhysicalPlan, size: Sizer) -> float:
    rows, num_bytes = size(node)
    match node:
        case ScanExec():
            return num_bytes * _SCANNED_BYTE
        case HashJoinExec():
            build, probe = size(node.right)[0], size(node.left)[0]
            return build * _BUILD_ROW + probe * _PROBE_ROW + rows * _JOINED_ROW
        case AggregateExec():
            return size(node.child)[0] * _GROUPED_ROW + rows * _GROUP
        case SortExec() if node.fetch is None:
            return rows * _SORTED_ROW
    return 0.0
