"""The rows of a stage whose rows depend on how its input was divided among tasks, merged.

Three tasks give three partial rows of a group, one task gives one. What the next stage does first,
a final aggregate or the merge of a LIMIT, makes both the same. So both are compared after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn
from stagecoach.infra.replay.recorded_run import RecordedRun
from stagecoach.infra.worker.inputs import task_resources
from stagecoach.infra.worker.task import output_schema
from stagecoach.planner.plan.early_filters import early_filter
from stagecoach.planner.plan.physical import (
    AggregateExec,
    FilterExec,
    LimitExec,
    PhysicalPlan,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
)
from stagecoach.planner.plan.stages import Branch, Stage, StageGraph
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.render.fragment import render_fragment
from stagecoach.planner.tree import walk
from stagecoach.planner.types import DataType, Field


def depends_on_tasks(stage: Stage) -> bool:
    """Whether other tasks over the same rows may give other rows."""
    return any(_depends(node) for node in walk(stage.fragment))


def _depends(node: PhysicalPlan) -> bool:
    match node:
        case AggregateExec():
            return node.mode == "partial"
        case SortExec() | SortPreservingMergeExec():
            return node.fetch is not None
        case LimitExec():
            return True
    return False


def merging_stage(graph: StageGraph, stage: Stage) -> Stage | None:
    """What a reader of a stage does to its rows first, as a stage of its own; None if unknown."""
    drops_groups = early_filter(stage.fragment) is not None
    for consumer in graph.consumers(stage.stage_id):
        for node in walk(graph.stages[consumer].fragment):
            merging = node
            if drops_groups and isinstance(node, FilterExec):
                merging = node.child  # the filter refuses what tasks may have dropped
            if not isinstance(merging, AggregateExec | SortPreservingMergeExec | LimitExec):
                continue
            leaf = merging.child
            if isinstance(leaf, StageInputExec) and leaf.stage_id == stage.stage_id:
                schema = tuple(Field(c.name, c.dtype) for c in node.columns)
                reader = graph.stages[consumer]
                branches = (Branch("single", (0,)),)
                return replace(reader, fragment=node, branches=branches, schema=schema)
    return None


def merged(run: RecordedRun, merging: Stage, rows: pa.Table) -> pa.Table:
    """The rows of a stage after that.

    Args:
        run: The run.
        merging: What `merging_stage` gave.
        rows: The rows of the stage.

    Raises:
        QueryError: The engine raises on the rows.
    """
    (leaf,) = merging.leaves
    columns = tuple(LeafColumn(f"c{c.id}", "", c.dtype) for c in leaf.outputs)
    sql = render_fragment(merging, DEFAULT_ENGINE, run.values)
    schema = output_schema(tuple(f.dtype for f in merging.schema))
    return query_rows(run, sql, [(columns, rows)], schema, merging.functions)


def query_rows(
    run: RecordedRun,
    sql: str,
    tables: Sequence[tuple[tuple[LeafColumn, ...], pa.Table]],
    schema: pa.Schema,
    functions: tuple[ProjectFunction, ...] = (),
) -> pa.Table:
    """The rows of SQL over tables in memory, `in_0`, `in_1`, ….

    Args:
        run: Says what an engine may use.
        sql: One SELECT.
        tables: Columns and rows.
        schema: Of the result.
        functions: Functions of the project that it calls.

    Raises:
        QueryError: The engine refuses it or raises on the rows.
    """
    relations = []
    for columns, rows in tables:
        named = rows.rename_columns([c.name for c in columns])
        relations.append(ArrowInput(columns, partial(_batches, named), rows.nbytes))
    settings = run.task_settings(functions)
    os.makedirs(settings.spill_dir, exist_ok=True)
    fragment = Fragment.of(sql, relations, schema)
    with task_engine(DEFAULT_ENGINE).run(fragment, task_resources(settings)) as batches:
        return pa.Table.from_batches(batches, schema=schema)


def _batches(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches()


def unmatched(
    run: RecordedRun, types: Sequence[DataType], left: pa.Table, right: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The rows of two bags that have no equal in the other; NULL equals NULL, NaN equals NaN.

    Args:
        run: Says what an engine may use.
        types: Types of the columns.
        left: Rows.
        right: Rows of the same types.

    Raises:
        QueryError: The engine raises on the rows.
    """
    columns = tuple(LeafColumn(f"c{i}", "", dtype) for i, dtype in enumerate(types))
    names = ", ".join(c.name for c in columns)
    sql = f"SELECT {names} FROM in_0 EXCEPT ALL SELECT {names} FROM in_1"
    schema = output_schema(tuple(types))
    one, two = (columns, left), (columns, right)
    return query_rows(run, sql, [one, two], schema), query_rows(run, sql, [two, one], schema)
