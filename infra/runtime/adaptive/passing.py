"""Lets tasks try whether a partial aggregate reduces their rows, and pass rows on if not.

    GROUP BY of a nearly unique key:  rows ─▶ hash table ─▶ as many groups ─▶ shuffle
    passed on instead:                rows ─▶ states of one row each ─────▶ shuffle

A task tries before it chooses: it counts the groups of a sample of its rows
(`infra.engines.trial`). Here it is decided which tasks try, and on which rows: where the planner
does not expect few groups anyway, and a sample costs a fiftieth of the task or less.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagecoach.infra.formats.snapshot import Snapshot
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import ScanInput
from stagecoach.infra.runtime.adaptive.decision import Decision
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.worker.reports import TaskReport
from stagecoach.infra.worker.spec import EXPANSION, InputSpec, ShuffleInput, TaskSpec, Trial
from stagecoach.infra.worker.trial import expected_share
from stagecoach.planner.plan.early_filters import without_early_filter
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExpandExec,
    FilterExec,
    GenerateExec,
    HashJoinExec,
    ProjectionExec,
    ScanExec,
    StageInputExec,
)
from stagecoach.planner.plan.stages import Stage

MIN_ROWS = 2_000_000
"""Rows of a task below which it does not try: there is little to gain."""
SAMPLE_SHARE = 0.01
"""Of a task's rows that it tries at most."""
MAX_SAMPLE_ROWS = 50_000
"""Rows that it tries at most."""

_CLEARLY_FEW = 0.05  # groups per row, by the planner's estimate, of which nothing is tried
_LIKELY = 0.5  # the same for inputs of which only the first rows can be tried
_ROWS_PER_PIECE = 2_000_000  # a sample of more rows is taken from more places
_MAX_PIECES = 4
_OTHERS_SHARE = 0.02  # of a task's bytes that all other inputs may be: a trial hashes them again
_OTHERS_MEMORY = 1 / 16  # of a task's memory that they may fill
_STREAMED = ("inner", "cross", "left", "semi", "anti")


@dataclass(frozen=True)
class TrialRule:
    """When a task passes its rows on.

    Args:
        share: Groups per row from which it does; above 1 for never.
        row_sql: The fragment that gives each row as a state; None where there is none.
    """

    share: float
    row_sql: str | None


def with_trials(
    stage: Stage,
    specs: Sequence[TaskSpec],
    rule: TrialRule,
    snapshot: Snapshot,
    manifests: Mapping[int, Manifest],
) -> tuple[TaskSpec, ...]:
    """The tasks of a stage, with a trial where that may pay.

    Args:
        stage: The stage.
        specs: Its tasks.
        rule: When rows are passed on, and how.
        snapshot: Files of the tables.
        manifests: Upstream manifests by stage number.
    """
    node, leaf = _aggregate(stage), streamed_leaf(stage)
    if rule.row_sql is None or rule.share > 1 or leaf is None:
        return tuple(specs)
    if node is None:
        return tuple(specs)
    result: list[TaskSpec] = []
    for spec in specs:
        rows = _rows_of(spec.inputs[leaf], stage.leaves[leaf], manifests)
        likely = estimated_share(stage, len(specs))
        sample = _sample(spec, leaf, rows, stage.leaves[leaf], snapshot, likely)
        # A row that is passed on is not a group, which the task may drop if it is complete.
        skipped = likely < _CLEARLY_FEW or spec.bloom is not None or bool(spec.variables)
        if sample is None or skipped or not _others_are_small(spec, leaf):
            result.append(spec)
            continue
        num_rows, files = sample
        trial = Trial(
            sql=rule.row_sql,
            num_keys=len(node.groups),
            leaf=leaf,
            num_rows=num_rows,
            of_rows=rows,
            files=files,
            share=rule.share,
        )
        result.append(dataclasses.replace(spec, trial=trial))
    return tuple(result)


def streamed_leaf(stage: Stage) -> int | None:
    """The input whose rows come one by one to the aggregate on top, None where there is no such."""
    top = _aggregate(stage)
    if len(stage.branches) != 1 or top is None:
        return None
    node = top.child
    while not isinstance(node, ScanExec | StageInputExec):
        if isinstance(node, FilterExec | ProjectionExec | GenerateExec | ExpandExec):
            node = node.child
        elif isinstance(node, HashJoinExec) and node.kind in _STREAMED:
            node = node.left
        else:
            return None
    (position,) = (i for i, leaf in enumerate(stage.leaves) if leaf is node)
    return position


def _aggregate(stage: Stage) -> AggregateExec | None:
    """The aggregate on top of a stage, or below the filter that drops complete groups."""
    top = without_early_filter(stage.fragment)
    return top if isinstance(top, AggregateExec) else None


def estimated_share(stage: Stage, tasks: int) -> float:
    """Groups per row of a task by the planner's estimate, 1 where there is none."""
    below = int(without_early_filter(stage.fragment) is not stage.fragment)
    sizes = stage.operator_rows[below : below + 2]
    if len(sizes) < 2:
        return 1.0
    groups, rows = sizes
    return expected_share(groups, rows / max(tasks, 1))


def trial_decision(reports: Sequence[TaskReport]) -> Decision | None:
    """What to say of the trials of a stage's tasks, None where none was made."""
    trials = [report.trial for report in reports if report.trial is not None]
    if not trials:
        return None
    passed = sum(trial.passed for trial in trials)
    rows, groups = sum(t.rows for t in trials), sum(t.groups for t in trials)
    share = sum(trial.share for trial in trials) / len(trials)
    what = (
        f"rows passed on as they are by {passed} of {len(reports)} tasks"
        if passed
        else f"partial aggregate kept by {len(trials)} tasks that tried"
    )
    return Decision(
        "passing",
        f"{what}: {groups:,} groups in {rows:,} rows tried, {share:.0%} of all rows expected",
    )


def _rows_of(
    part: InputSpec, leaf: ScanExec | StageInputExec, manifests: Mapping[int, Manifest]
) -> int:
    """Rows of an input of a task; of a stage's output in proportion to the bytes."""
    if isinstance(part, ScanInput):
        return sum(file.read_rows for file in part.files)
    if isinstance(part, ShuffleInput) and isinstance(leaf, StageInputExec):
        manifest = manifests[leaf.stage_id]
        return manifest.num_rows * part.num_bytes // max(sum(manifest.partition_bytes), 1)
    return 0


def _sample(
    spec: TaskSpec,
    leaf: int,
    rows: int,
    node: ScanExec | StageInputExec,
    snapshot: Snapshot,
    likely: float,
) -> tuple[int, tuple[DataFile, ...]] | None:
    """How many rows to try, and of a scan which."""
    part = spec.inputs[leaf]
    wanted = min(int(rows * SAMPLE_SHARE), MAX_SAMPLE_ROWS)
    if rows < MIN_ROWS or not wanted:
        return None
    if isinstance(part, ScanInput) and isinstance(node, ScanExec):
        known = {f.uri: f.row_groups for f in snapshot.table(node.table).files}
        files = sample_files(part.files, known, rows, wanted)
        return (wanted, files) if files else None
    if isinstance(part, ShuffleInput) and likely >= _LIKELY:
        return wanted, ()
    return None


def sample_files(
    files: Sequence[DataFile], row_groups: Mapping[str, Sequence[int]], rows: int, wanted: int
) -> tuple[DataFile, ...]:
    """About `wanted` rows from several places, each the beginning of a row group.

    Args:
        files: What a task reads.
        row_groups: Rows of the row groups of each file, by its URI.
        rows: Rows of `files`.
        wanted: Rows to try.

    Returns:
        Parts of `files`; none where a row group is no small part of them and must be fetched whole.
    """
    starts: list[tuple[DataFile, int, int]] = []
    for file in files:
        start = 0
        for size in row_groups.get(file.uri, (file.num_rows,)):
            low, high = max(start, file.row_start), min(start + size, file.row_end)
            start += size
            if low < high:
                starts.append((file, low, high))
    pieces = min(max(rows // _ROWS_PER_PIECE, 1), _MAX_PIECES, len(starts))
    if any(file.local_path is None for file in files):
        pieces = min(pieces, int(len(starts) * SAMPLE_SHARE))
    if not pieces:
        return ()
    chosen = [starts[i * len(starts) // pieces] for i in range(pieces)]
    size = max(wanted // pieces, 1)
    return tuple(
        dataclasses.replace(file, rows=(low, min(low + size, high))) for file, low, high in chosen
    )


def _others_are_small(spec: TaskSpec, leaf: int) -> bool:
    """Whether a trial may read all other inputs once more."""
    sizes = [_bytes_of(part) for part in spec.inputs]
    others = sum(size for i, size in enumerate(sizes) if i != leaf)
    return others <= _OTHERS_SHARE * sizes[leaf] and (
        others * EXPANSION <= _OTHERS_MEMORY * spec.settings.memory_bytes
    )


def _bytes_of(part: InputSpec) -> float:
    """Stored bytes of what a task reads of an input; endless for one that cannot be read twice."""
    if isinstance(part, ShuffleInput):
        return part.num_bytes
    if isinstance(part, ScanInput):
        return sum(file.read_bytes for file in part.files)
    return math.inf
