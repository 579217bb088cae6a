"""Prints what replaying the stages of a run has shown.

stage 1   sum by shop
the run   3 rows
DuckDB    3 rows   0.1 s   as in the run
Spark     3 rows   1.2 s   1 row differs from DuckDB
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stagecoach.planner.lineage.row_trace import CHOSEN
from stagecoach.planner.plan.physical import ScanExec
from stagecoach.planner.types import Field
from stagecoach.terminal.output import render_rows
from stagecoach.terminal.row_diff import diff_lines
from stagecoach.terminal.text_tables import printable, terminal_width

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.assets.query_tests.run import RowsDiffer
    from stagecoach.assets.replay.stages import Side, StageReplay
    from stagecoach.infra.replay.recorded_run import RecordedRun
    from stagecoach.infra.replay.row_tracing import TracedLeaf, TracedStage
    from stagecoach.planner.plan.stages import Stage


_INDENT = "    "


def run_lines(run: RecordedRun) -> Iterator[str]:
    """Yield what run it is."""
    stages = len(run.graph.stages)
    yield f"run {run.run_id}: query '{run.graph.query}', {_count(stages, 'stage')}"
    for name, value in sorted(run.values.items()):
        yield f"  {name} = {printable(str(value.value))}"


def stage_lines(replay: StageReplay, time_zone: str) -> Iterator[str]:
    """Yield how a stage came out."""
    yield ""
    yield f"stage {replay.stage.stage_id}  {replay.stage.title}"
    sides = [s for s in (replay.committed, replay.native, replay.spark) if s.rows is not None]
    width = max((len(s.name) for s in sides), default=0)
    for side in sides:
        yield f"  {_side(side, replay, sides, width)}".rstrip()
    for side in (replay.committed, replay.native, replay.spark):
        if side.problem:
            yield f"  {side.name}: no rows: {side.problem.splitlines()[0]}"
    for note in replay.notes:
        yield f"  note: {note}"
    for told in replay.differences:
        yield ""
        yield from (f"  {line}".rstrip() for line in diff_lines(told, time_zone))


def summary_lines(replays: Sequence[StageReplay], *, asked_spark: bool) -> Iterator[str]:
    """Yield what all of it comes to."""
    yield ""
    both = [r for r in replays if r.native.rows is not None and r.spark.rows is not None]
    first = next((r for r in replays if r.engines_differ), None)
    if first is not None:
        stage = first.stage
        yield (
            f"DuckDB and Spark differ first in stage {stage.stage_id} ({stage.title}), over the "
            "same input"
        )
    elif asked_spark and both:
        yield f"DuckDB and Spark give the same rows ({_count(len(both), 'stage')} compared)"
    changed = [r.stage.stage_id for r in replays if r.run_differs]
    if changed:
        stages = ", ".join(map(str, changed))
        yield f"the run committed other rows than it would now: stage {stages}"
    compared = [r for r in replays if r.compared_with_run]
    if compared and not changed:
        yield f"the run's rows are what its stages give again ({_count(len(compared), 'stage')})"


def chosen_lines(
    chosen: pa.Table, fields: Sequence[Field], total: int, why: str, limit: int, time_zone: str
) -> Iterator[str]:
    """Yield the rows of the result that are traced.

    Args:
        chosen: The rows.
        fields: Their columns.
        total: Rows of the result.
        why: What they have in common.
        limit: Most rows shown.
        time_zone: Zone that timestamps are shown in.
    """
    yield ""
    verb = "" if chosen.num_rows == 1 else "s"
    yield f"{chosen.num_rows:,} row{verb} of the result ({total:,} in all) {why}"
    yield from _table(chosen, fields, limit, time_zone)


def trace_lines(traced: TracedStage, limit: int, time_zone: str) -> Iterator[str]:
    """Yield what contributes to the chosen rows of a stage."""
    yield ""
    yield f"stage {traced.stage.stage_id}  {traced.stage.title}"
    if traced.problem:
        yield f"  not traced: {traced.problem}"
        return
    for leaf in sorted(traced.leaves, key=lambda t: t.trace.position):
        yield f"  {leaf_name(leaf)}: {_contributing(leaf)}"
        for text in _found_by(traced.stage, leaf):
            yield f"    {text}"
        for note in leaf.notes:
            yield f"    note: {note}"
        yield from _table(leaf.rows, leaf_columns(leaf), limit, time_zone)


def leaf_name(leaf: TracedLeaf) -> str:
    """What an input of a stage is."""
    found = leaf.trace.leaf
    return f"table {found.table}" if isinstance(found, ScanExec) else f"stage {found.stage_id}"


def leaf_columns(leaf: TracedLeaf) -> Sequence[Field]:
    """The columns of an input, each with a name of its own."""
    from stagecoach.assets.report.column_names import column_names

    columns = leaf.trace.leaf.outputs
    return [Field(n, c.dtype) for n, c in zip(column_names(columns), columns, strict=True)]


def _contributing(leaf: TracedLeaf) -> str:
    if leaf.num_rows is None:
        total = "" if leaf.total_rows is None else f" ({_count(leaf.total_rows, 'row')})"
        return f"all rows may contribute{total}"
    of = "" if leaf.total_rows is None else f" of {leaf.total_rows:,}"
    verb = "contributes" if leaf.num_rows == 1 else "contribute"
    return f"{leaf.num_rows:,}{of} {'row' if leaf.num_rows == 1 else 'rows'} {verb}"


def _found_by(stage: Stage, leaf: TracedLeaf) -> Iterator[str]:
    for source, columns in leaf.by.items():
        names = ", ".join(map(printable, columns))
        if source == CHOSEN:
            yield f"by {names}"
            continue
        other = stage.leaves[source]
        what = f"table {other.table}" if isinstance(other, ScanExec) else f"stage {other.stage_id}"
        yield f"by {names}, as in the rows of {what}"


def _table(rows: pa.Table, fields: Sequence[Field], limit: int, time_zone: str) -> Iterator[str]:
    """Yield the first rows as a table that fits the terminal."""
    if not rows.num_rows or not rows.num_columns:
        return
    named = rows.rename_columns([field.name for field in fields]).slice(0, limit)
    width = terminal_width()
    *lines, note = render_rows(
        named.schema,
        named.to_batches(),
        "table",
        columns=fields,
        time_zone=time_zone,
        width=None if width is None else width - len(_INDENT),
    )
    for line in lines:
        yield f"{_INDENT}{line}"
    if note != f"({_count(named.num_rows, 'row')})":  # columns are left out
        yield f"{_INDENT}{note}"
    if rows.num_rows > limit:
        yield f"{_INDENT}… (the first {limit:,} are shown; --rows N shows more)"


def _side(side: Side, replay: StageReplay, sides: Sequence[Side], width: int) -> str:
    assert side.rows is not None
    rows = _count(side.rows.num_rows, "row")
    text = f"{side.name:<{width}}  {rows:>14}"
    if side is replay.committed:
        return text
    told = [d for d in replay.differences if side.name in (d.left, d.right)]
    words = [f"{side.seconds:.2f} s"]
    words += [_difference(d, side.name) for d in told]
    return f"{text}  {'  '.join(words)}"


def _difference(told: RowsDiffer, name: str) -> str:
    other = told.left if told.right == name else told.right
    number = len(told.difference.pairs)
    return f"{_count(number, 'row')} {'differs' if number == 1 else 'differ'} from {other}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
