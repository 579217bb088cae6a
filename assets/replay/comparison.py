"""How two bags of rows of a stage differ, whatever their size.

DuckDB finds the rows that have no equal; in Python only these are looked at. Floating-point values
that differ in their last digits are equal: sums depend on the order of rows.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from stagecoach.assets.query_tests.compare import (
    Difference,
    Row,
    canonical_rows,
    difference,
    same_value,
)
from stagecoach.assets.query_tests.run import RowsDiffer
from stagecoach.infra.replay.merged_rows import unmatched
from stagecoach.infra.replay.recorded_run import RecordedRun
from stagecoach.planner.types import Field

TOLERANCE = 1e-9
"""Relative difference up to which floating-point values are equal."""

_MAX_SHOWN = 500
_MAX_LEFT_OVER = 2_000_000


def compare_rows(
    run: RecordedRun,
    fields: Sequence[Field],
    expected: pa.Table,
    found: pa.Table,
    *,
    left: str,
    right: str,
) -> RowsDiffer | None:
    """How rows differ; None where both are the same bag.

    Args:
        run: Says what an engine may use.
        fields: Columns, with names for people.
        expected: Rows.
        found: Rows of the same types.
        left: What the expected rows are called.
        right: What the others are called.
    """
    if not fields:
        one, two = expected, found
    else:
        one, two = unmatched(run, [f.dtype for f in fields], expected, found)
    if max(one.num_rows, two.num_rows) <= _MAX_LEFT_OVER:
        missing, extra = _apart(canonical_rows(one), canonical_rows(two))
    else:  # so many that they hardly differ by rounding alone
        missing, extra = list(range(one.num_rows)), list(range(two.num_rows))
    if not missing and not extra:
        return None
    one, two = (_taken(t, rows) for t, rows in ((one, missing), (two, extra)))
    told = difference(one, two, ordered=False, tolerance=TOLERANCE)
    pairs = _all_pairs(() if told is None else told.pairs, len(missing), len(extra))
    if not pairs:
        return None
    counted = Difference(expected=expected.num_rows, found=found.num_rows, pairs=pairs)
    return RowsDiffer(
        fields=tuple(fields),
        expected=one,
        found=two,
        difference=counted,
        left=left,
        right=right,
    )


def num_differing(rows: RowsDiffer) -> int:
    """How many rows of the two bags have no equal in the other, similar ones counted as one."""
    return len(rows.difference.pairs)


def _taken(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    return table.take(pa.array(rows[:_MAX_SHOWN], pa.int64()))


def _all_pairs(
    shown: Sequence[tuple[int | None, int | None]], missing: int, extra: int
) -> tuple[tuple[int | None, int | None], ...]:
    """The pairs that are shown, and after them one for each row that is not."""
    rest = max(missing - _MAX_SHOWN, extra - _MAX_SHOWN, 0)
    return (*shown, *((None, None) for _ in range(rest)))


def _apart(left: Sequence[Row], right: Sequence[Row]) -> tuple[list[int], list[int]]:
    """Numbers of the rows without a partner that is equal but for rounding.

    Rows that are equal without their floating-point values are put in order by these and paired.
    """
    groups: dict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((left, right)):
        for number, row in enumerate(rows):
            groups[_without_floats(row)][side].append(number)
    missing: list[int] = []
    extra: list[int] = []
    for ours, theirs in groups.values():
        ours.sort(key=lambda i: _floats(left[i]))
        theirs.sort(key=lambda j: _floats(right[j]))
        paired = len(ours) == len(theirs) and all(
            same_value(left[i], right[j], TOLERANCE) for i, j in zip(ours, theirs, strict=True)
        )
        if not paired:
            missing += ours
            extra += theirs
    return sorted(missing), sorted(extra)


def _without_floats(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_floats, value))
    return "float" if isinstance(value, float) else value


def _floats(value: Any) -> tuple[float, ...]:
    if isinstance(value, tuple):
        return tuple(number for item in value for number in _floats(item))
    return (value,) if isinstance(value, float) else ()
