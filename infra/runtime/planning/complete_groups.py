"""Tells each task of a stage which keys no other task reads.

    row groups of task 0: 1–900    task 1: 900–2,000    task 2: 2,001–3,000
    complete:             below 900        above 900, below 2,001      above 2,000

A fragment that drops complete groups asks for it (`stagecoach.planner.distribution`). Nothing is
told where a bound is missing, because a row of any key may be there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanSlice, ScanUnit
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.runtime.adaptive.estimator import TaskAssignment
from stagecoach.infra.runtime.planning.row_group_bounds import MOST_FOOTERS, bounds_of_groups
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.plan.stages import Branch, Stage
from stagecoach.planner.plan.task_values import COMPLETE_ABOVE, COMPLETE_BELOW

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1

KeyRange = tuple[int, int]
"""The least and the greatest key of some rows, both included."""


def complete_keys(
    stage: Stage,
    key: tuple[ScanExec, int],
    table: TableSnapshot,
    tasks: Sequence[TaskAssignment],
    store: ObjectStore,
) -> tuple[KeyRange | None, ...]:
    """Return for each task the ends of the range of keys that only it reads.

    The ends are not in the range. None for a task that has no such keys, as far as the bounds of
    files and row groups tell.

    Args:
        stage: A stage whose fragment drops complete groups.
        key: The scan with the key, and the position of the key in it; see `complete_key`.
        table: The table of the scan.
        tasks: What the tasks of the stage read.
        store: The storage root, which tells how files are reached.
    """
    spans = _spans(stage, key, table, tasks, store)
    return (None,) * len(tasks) if spans is None else tuple(exclusive_ranges(spans))


def range_variables(ends: KeyRange | None) -> Mapping[str, int]:
    """Return what a fragment reads of the range of its task, by variable."""
    return {} if ends is None else {COMPLETE_ABOVE: ends[0], COMPLETE_BELOW: ends[1]}


def complete_decision(ranges: Sequence[KeyRange | None]) -> Decision | None:
    """Return what to say of the tasks; None if none of them drops anything."""
    found = sum(one is not None for one in ranges)
    text = f"{found:,} of {len(ranges):,} tasks drop groups that no other task has rows of"
    return Decision("complete", text) if found else None


def exclusive_ranges(spans: Sequence[KeyRange | None]) -> Iterator[KeyRange | None]:
    """Yield for each span the ends of the range of keys that are in no other one.

    Args:
        spans: The keys of each task; None for a task without rows.
    """
    order = sorted((span, task) for task, span in enumerate(spans) if span is not None)
    highs = [high for (_, high), _ in order]
    before = [None, *itertools.accumulate(highs, max)][: len(order)]
    after = [*(low for (low, _), _ in order[1:]), None][: len(order)]
    found: dict[int, KeyRange] = {}
    for ((low, high), task), above, below in zip(order, before, after, strict=True):
        start = max(low - 1, _LEAST) if above is None else above
        end = min(high + 1, _MOST) if below is None else below
        if start + 1 < end and start < high and low < end:
            found[task] = start, end
    for task in range(len(spans)):
        yield found.get(task)


def _spans(
    stage: Stage,
    key: tuple[ScanExec, int],
    table: TableSnapshot,
    tasks: Sequence[TaskAssignment],
    store: ObjectStore,
) -> list[KeyRange | None] | None:
    """The keys of each task, None for one without rows; None if those of one are not known."""
    if len(tasks) < 2 or table.native_reason is not None:
        return None
    scan, place = key
    position = next(i for i, leaf in enumerate(stage.leaves) if leaf is scan)
    if stage.branches != (Branch("splits", (position,)),):
        return None
    name, dtype = scan.source[place], scan.outputs[place].dtype
    names = [column.name.lower() for column in table.columns]
    if name.lower() not in names:
        return None
    column = names.index(name.lower())
    if column >= len(names) - len(table.partition_columns) or table.columns[column].dtype != dtype:
        return None
    slices = [task.slices[position] for task in tasks]
    units = [part.units if isinstance(part, ScanSlice) else () for part in slices]
    bounds = _FileBounds.read(table, column, list(itertools.chain(*units)), store)
    if bounds is None:
        return None
    spans = [bounds.span(part) for part in units]
    is_known = all(span or not part for span, part in zip(spans, units, strict=True))
    return spans if is_known else None


@dataclass(frozen=True)
class _FileBounds:
    """Bounds of a column in files, and in the row groups of those that several tasks read."""

    files: Mapping[str, DataFile]
    column: int
    groups: Mapping[str, Sequence[StoredBounds] | None]

    @classmethod
    def read(
        cls, table: TableSnapshot, column: int, units: Sequence[ScanUnit], store: ObjectStore
    ) -> _FileBounds | None:
        """Read footers where that is needed; None if there are too many."""
        files = {file.uri: file for file in table.files}
        cut = {unit.uri for unit in units if unit.row_start or unit.rows_after}
        if len(cut) > MOST_FOOTERS or not cut <= files.keys():
            return None
        name, options = table.columns[column].name, StorageOptions.of(store)
        found = bounds_of_groups([files[uri] for uri in sorted(cut)], (name,), options)
        groups = {
            uri: None if known is None else [one for (one,) in known]
            for uri, known in found.items()
        }
        return cls(files, column, groups)

    def span(self, units: Sequence[ScanUnit]) -> KeyRange | None:
        """The least and the greatest value in some units; None if they are not known."""
        lows: list[int] = []
        highs: list[int] = []
        for low, high in itertools.chain(*map(self._ends, units)):
            if not isinstance(low, int) or not isinstance(high, int):
                return None
            lows.append(low)
            highs.append(high)
        return (min(lows), max(highs)) if lows else None

    def _ends(self, unit: ScanUnit) -> Iterator[tuple[object, object]]:
        file = self.files.get(unit.uri)
        if file is None:
            yield None, None
        elif not unit.row_start and not unit.rows_after:
            known = file.bounds[self.column] if self.column < len(file.bounds) else (None,) * 3
            yield known[1], known[2]
        else:
            groups = self.groups.get(unit.uri)
            if groups is None:
                yield None, None
                return
            start = 0
            for rows, known in zip(file.row_groups, groups, strict=True):
                if start < unit.row_end and start + rows > unit.row_start:
                    yield known[1], known[2]
                start += rows
