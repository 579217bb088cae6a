"""Estimate how long a task engine computes a plan: seconds of one core.

The seconds of each unit of work are those of DuckDB on TPC-H at scale factor 10, fitted to its
times in one task (`python -m benchmarks.work`). They are shipped and not measured anew, because a
plan must not depend on the machine that makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from stagecoach.planner.plan.physical import (
    AggregateExec,
    HashJoinExec,
    PhysicalPlan,
    ScanExec,
    SortExec,
)

SECONDS: Mapping[str, float] = MappingProxyType(
    {
        "scanned byte": 0.34e-9,  # of the columns in memory
        "build row": 42e-9,
        "probe row": 10e-9,
        "joined row": 12e-9,
        "grouped row": 31e-9,
        "group": 45e-9,
        "ranged row": 20e-9,  # of an aggregate that takes one range of a key after the other
        "ranged group": 30e-9,
        "sorted row": 120e-9,
    }
)
"""What one core takes for a unit of work."""

_HASHED = ("grouped row", "group")

Sizer = Callable[[PhysicalPlan], tuple[float, float]]
"""Estimated rows and bytes of an operator."""


def work_seconds(operators: Iterable[PhysicalPlan], size: Sizer) -> float:
    """Seconds that one core takes for some operators of a plan; equal ones are computed once."""
    return sum(units * SECONDS[name] for name, units in work_units(operators, size).items())


def state_bytes(operators: Iterable[PhysicalPlan], size: Sizer) -> float:
    """Bytes of the rows that operators hold until they have all: build sides, groups, sorted rows.

    The hash tables of an engine take two to three times as much.
    """
    total = 0.0
    for node in dict.fromkeys(operators):
        match node:
            case HashJoinExec():
                total += size(node.right)[1]
            case AggregateExec():
                total += size(node)[1]
            case SortExec() if node.fetch is None:
                total += size(node)[1]
    return total


def work_units(operators: Iterable[PhysicalPlan], size: Sizer) -> dict[str, float]:
    """How often each unit of work is done for some operators of a plan, by its name."""
    total = dict.fromkeys(SECONDS, 0.0)
    for node in dict.fromkeys(operators):
        for name, units in _units(node, size).items():
            total[name] += units
    return total


def _units(node: PhysicalPlan, size: Sizer) -> dict[str, float]:
    rows, num_bytes = size(node)
    match node:
        case ScanExec():
            return {"scanned byte": num_bytes}
        case HashJoinExec():
            build, probe = size(node.right)[0], size(node.left)[0]
            return {"build row": build, "probe row": probe, "joined row": rows}
        case AggregateExec():
            row, group = ("ranged row", "ranged group") if node.range_ends else _HASHED
            return {row: size(node.child)[0], group: rows}
        case SortExec() if node.fetch is None:
            return {"sorted row": rows}
    return {}
