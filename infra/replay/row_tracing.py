"""Finds the rows of the inputs of a stage that chosen rows of its output come from.

    chosen rows ─▶ `planner.lineage.row_trace` ─▶ one query for each leaf, over all of its rows

The queries run in DuckDB, whichever engine ran the stage: they compare columns, and only for a
stage of DuckDB also expressions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Relation, Resources
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.pruning.fixed_times import with_fixed_times
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, leaf_schema
from stagecoach.infra.replay.recorded_run import NotReplayableError, RecordedRun
from stagecoach.infra.replay.stage_rows import bound_inputs, check_unchanged, whole_inputs
from stagecoach.infra.worker.inputs import task_resources
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.errors import SqlError, StagecoachError
from stagecoach.planner.lineage.row_trace import CHOSEN, LeafTrace, leaf_plan, trace_rows
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.plan.physical import PhysicalPlan, StageInputExec
from stagecoach.planner.plan.stages import Branch, Stage
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.types import Field

DEFAULT_MAX_ROWS = 100_000

_TOO_MANY = "more rows than are traced on"


@dataclass(frozen=True, kw_only=True)
class TracedLeaf:
    """The rows of an input of a stage that contribute to chosen rows.

    Args:
        trace: How they were found.
        num_rows: How many they are; None where nothing tells them from others.
        total_rows: How many the input has, where that is known.
        rows: The rows, or the first of them, with the leaf's columns.
        by: Names of the columns by which they were found, for each source.
        notes: Why there are not fewer.
    """

    trace: LeafTrace
    num_rows: int | None
    total_rows: int | None
    rows: pa.Table
    by: Mapping[int, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether `rows` are all rows that contribute."""
        return self.num_rows is not None and self.rows.num_rows == self.num_rows


@dataclass(frozen=True, kw_only=True)
class LeafTracer:
    """Traces rows of a stage to its leaves.

    Args:
        stage: The stage.
        values: A value for every parameter.
        resources: What an engine may use.
        relation: Gives all rows of a leaf, by its position; called once for each query.
        known_rows: How many rows a leaf has, where that is known.
        max_rows: Most rows of a leaf that are kept; more cannot be traced further.
    """

    stage: Stage
    values: Mapping[str, Literal]
    resources: Resources
    relation: Callable[[int], Relation]
    known_rows: Callable[[int], int | None] = lambda _: None
    max_rows: int = DEFAULT_MAX_ROWS

    def trace(self, chosen: pa.Table) -> list[TracedLeaf]:
        """The rows of each leaf that contribute to these rows of the stage's output.

        Args:
            chosen: Rows, columns in the order of the stage's schema.

        Raises:
            StagecoachError: An input is lost.
        """
        kept: dict[int, pa.Table] = {CHOSEN: chosen}
        found: list[TracedLeaf] = []
        for trace in trace_rows(self.stage).leaves:
            # What is not kept as a whole cannot tell which rows of others contribute.
            trace = trace.without(set(trace.sources) - kept.keys())
            if self.stage.engine != DEFAULT_ENGINE:
                trace = trace.plain()
            traced = self._leaf(trace, kept)
            found.append(traced)
            if traced.is_whole and trace.is_narrowed:
                kept[trace.position] = traced.rows
        return found

    def _leaf(self, trace: LeafTrace, kept: Mapping[int, pa.Table]) -> TracedLeaf:
        total = self.known_rows(trace.position)
        notes = trace.notes
        if not trace.leaf.outputs:
            notes = (*notes, "the stage only counts its rows")
        is_small = total is not None and total <= self.max_rows
        if not trace.leaf.outputs or not (trace.is_narrowed or is_small):
            empty = leaf_schema(_columns(trace)).empty_table()
            return TracedLeaf(
                trace=trace, num_rows=None, total_rows=total, rows=empty, by={}, notes=notes
            )
        try:
            num_rows, rows = self._rows(trace, kept)
        except QueryError:
            # An expression may raise for a row that a filter would have kept away from it.
            trace = trace.plain()
            notes = (*notes, "an expression fails on rows that the stage does not give it")
            num_rows, rows = self._rows(trace, kept)
        by = {source: trace.columns(source) for source in trace.sources}
        return TracedLeaf(
            trace=trace, num_rows=num_rows, total_rows=total, rows=rows, by=by, notes=notes
        )

    def _rows(self, trace: LeafTrace, kept: Mapping[int, pa.Table]) -> tuple[int, pa.Table]:
        """How many rows contribute, and the first of them."""
        plan, sources = leaf_plan(self.stage, trace)
        schema = tuple(Field(c.name, c.dtype) for c in trace.leaf.outputs)
        asked = replace(
            self.stage,
            fragment=plan,
            branches=(Branch("single", (0,)),),
            schema=schema,
            engine=DEFAULT_ENGINE,
        )
        try:
            sql = render_fragment(
                with_fixed_times(asked, self.resources.time_zone), DEFAULT_ENGINE, self.values
            )
        except SqlError as error:
            raise QueryError(str(error)) from error
        tables: dict[PhysicalPlan, Relation] = {
            right: _table(right, kept[source]) for source, right in sources
        }
        # The leaf comes first; a source may be asked more than once.
        relations: list[Relation] = [self.relation(trace.position)]
        relations += [tables[leaf] for leaf in asked.leaves[1:]]
        fragment = Fragment.of(sql, relations, output_schema(tuple(f.dtype for f in schema)))
        os.makedirs(self.resources.spill_dir, exist_ok=True)
        count, batches = 0, []
        with task_engine(DEFAULT_ENGINE).run(fragment, self.resources) as given:
            for batch in given:
                missing = max(self.max_rows - count, 0)
                batches.append(batch.slice(0, missing))
                count += batch.num_rows
        return count, pa.Table.from_batches(batches, schema=fragment.schema)


def _table(leaf: StageInputExec, rows: pa.Table) -> ArrowInput:
    columns = tuple(LeafColumn(f"c{c.id}", "", c.dtype) for c in leaf.outputs)
    named = rows.rename_columns([c.name for c in columns]).cast(leaf_schema(columns))
    return ArrowInput(columns, partial(_batches, named), rows.nbytes)


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()


def _columns(trace: LeafTrace) -> tuple[LeafColumn, ...]:
    return tuple(LeafColumn(f"c{i}", "", c.dtype) for i, c in enumerate(trace.leaf.outputs))


# ---------------------------------------------------------------- all stages of a run


@dataclass(frozen=True, kw_only=True)
class TracedStage:
    """The rows that contribute to chosen rows of a stage.

    Args:
        stage: The stage.
        chosen: The chosen rows; None where the stage cannot be traced.
        leaves: What contributes to them.
        problem: Why it cannot be traced, or why it is not.
    """

    stage: Stage
    chosen: pa.Table | None
    leaves: tuple[TracedLeaf, ...] = ()
    problem: str = ""


def trace_run(
    run: RecordedRun, chosen: pa.Table, *, max_rows: int = DEFAULT_MAX_ROWS
) -> list[TracedStage]:
    """Trace rows of the result back through all stages, the head first.

    Args:
        run: The run.
        chosen: Rows of the head stage.
        max_rows: Most rows of an input that are traced further.
    """
    wanted: dict[int, list[pa.Table]] = {run.graph.head.stage_id: [chosen]}
    lost: dict[int, str] = {}
    found: list[TracedStage] = []
    for stage in reversed(run.graph.stages):
        rows = wanted.get(stage.stage_id)
        if stage.stage_id in lost or rows is None:
            why = lost.get(stage.stage_id, "none of the chosen rows comes from it")
            lost |= dict.fromkeys(stage.inputs, f"stage {stage.stage_id} is not traced")
            found.append(TracedStage(stage=stage, chosen=None, problem=why))
            continue
        together = pa.concat_tables(rows)
        try:
            leaves = _traced_leaves(run, stage, together, max_rows)
        except StagecoachError as error:
            lost |= dict.fromkeys(stage.inputs, f"stage {stage.stage_id} is not traced")
            found.append(TracedStage(stage=stage, chosen=together, problem=str(error)))
            continue
        found.append(TracedStage(stage=stage, chosen=together, leaves=tuple(leaves)))
        for traced in leaves:
            leaf = traced.trace.leaf
            if isinstance(leaf, StageInputExec):
                if not traced.is_whole:
                    lost[leaf.stage_id] = f"stage {stage.stage_id} needs {_TOO_MANY} of it"
                wanted.setdefault(leaf.stage_id, []).append(_positional(traced.rows))
    return found


def _positional(rows: pa.Table) -> pa.Table:
    return rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])


def _traced_leaves(
    run: RecordedRun, stage: Stage, chosen: pa.Table, max_rows: int
) -> list[TracedLeaf]:
    if stage.sql is not None:
        raise NotReplayableError(
            f"Spark ran the text of the whole query, so rows cannot be traced: "
            f"{stage.engine_reason}"
        )
    reads = run.reads(stage)
    specs = whole_inputs(reads)
    settings = run.task_settings(stage.functions)

    def relation(position: int) -> Relation:
        return bound_inputs(run, specs, settings)[position]

    def known_rows(position: int) -> int | None:
        leaf = stage.leaves[position]
        if isinstance(leaf, StageInputExec):
            return reads.manifests[leaf.stage_id].num_rows
        return None

    tracer = LeafTracer(
        stage=stage,
        values=run.values,
        resources=task_resources(settings),
        relation=relation,
        known_rows=known_rows,
        max_rows=max_rows,
    )
    leaves = tracer.trace(chosen)
    check_unchanged(run, specs)
    return leaves
