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
from stagecoach.planner.distribution.complete_groups import complete_key
from stagecoach.planner.plan.stages import Stage
from stagecoach.planner.plan.task_values import COMPLETE_ABOVE, COMPLETE_BELOW

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1

KeyRange = tuple[int, int]
"""The least and the greatest key of some rows, both included."""


@dataclass(frozen=True)
class CompleteKeys:
    """The keys that only one task reads.

    Args:
        ranges: For each task, the ends of the range of keys that only it reads, which are not in
            it; None where there is no such key.
        decision: What to say of it.
    """

    ranges: tuple[KeyRange | None, ...]
    decision: Decision | None = None

    def values(self, task: int) -> Mapping[str, int]:
        """Return what the fragment of a task reads of them, by variable."""
        found = self.ranges[task]
        return {} if found is None else {COMPLETE_ABOVE: found[0], COMPLETE_BELOW: found[1]}


def complete_keys(
    stage: Stage, table: TableSnapshot, tasks: Sequence[TaskAssignment], store: ObjectStore
) -> CompleteKeys:
    """Return which keys only one of the tasks reads, by the bounds of files and row groups.

    Args:
        stage: A stage whose fragment asks for it.
        table: The table of the scan with the key.
        tasks: What its tasks read.
        store: The storage root, which tells how files are reached.
    """
    spans = _spans(stage, table, tasks, store)
    if spans is None:
        return CompleteKeys((None,) * len(tasks))
    ranges = tuple(exclusive_ranges(spans))
    found = sum(one is not None for one in ranges)
    if not found:
        return CompleteKeys(ranges)
    text = f"{found:,} of {len(tasks):,} tasks drop groups that no other task has rows of"
    return CompleteKeys(ranges, Decision("complete", text))


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
    stage: Stage, table: TableSnapshot, tasks: Sequence[TaskAssignment], store: ObjectStore
) -> list[KeyRange | None] | None:
    """The keys of each task; None if those of one are not known."""
    found = complete_key(stage.fragment)
    if found is None or len(tasks) < 2 or table.native_reason is not None:
        return None
    scan, place = found
    position = next(i for i, leaf in enumerate(stage.leaves) if leaf is scan)
    (branch,) = stage.branches if len(stage.branches) == 1 else (None,)
    if branch is None or branch.kind != "splits" or branch.leaves != (position,):
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
    spans = [bounds and bounds.span(part) for part in units]
    known = all(span or not part for span, part in zip(spans, units, strict=True))
    return [span or None for span in spans] if known else None


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
        options = StorageOptions.from_dict(store.to_dict().get("options", {}))
        name = table.columns[column].name
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
