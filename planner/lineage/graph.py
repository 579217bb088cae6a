"""Compute the lineage of a stage graph: of each stage, and of the result over base tables.

A query that runs as one Spark stage has no operators. Its SQL is analysed if our planner can build
it; otherwise its lineage is unknown and contains every column of its tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagecoach.planner.catalog import MappingCatalog, TableInfo
from stagecoach.planner.errors import SqlError
from stagecoach.planner.limits.deep_stack import on_deep_stack, run_deep
from stagecoach.planner.lineage.model import (
    ColumnLineage,
    Decider,
    Lineage,
    QueryLineage,
    Source,
    StageColumn,
    TableColumn,
)
from stagecoach.planner.lineage.operators import trace
from stagecoach.planner.plan.stages import Stage, StageGraph


@on_deep_stack
def graph_lineage(graph: StageGraph) -> QueryLineage:
    """The lineage of all stages and of the result."""
    stages: list[Lineage] = []
    composed: list[Lineage] = []
    for stage in graph.stages:
        own = stage_lineage(graph, stage)
        stages.append(own)
        composed.append(_composed(own, stage.inputs, composed))
    result = composed[-1]
    if graph.result:  # Spark's names, which an operator's columns need not have
        columns = tuple(
            ColumnLineage(field.name, column.values, column.deciders)
            for field, column in zip(graph.result, result.columns, strict=True)
        )
        result = Lineage(columns, result.rows, result.unknown)
    return QueryLineage(tuple(stages), result)


@on_deep_stack
def stage_lineage(graph: StageGraph, stage: Stage) -> Lineage:
    """The lineage of one stage over what it reads itself."""
    if stage.sql is None:
        return trace(stage.fragment)
    return _of_text(graph, stage)


def _composed(own: Lineage, inputs: Sequence[int], before: Sequence[Lineage]) -> Lineage:
    """The lineage of a stage over base tables.

    Args:
        own: Over its inputs.
        inputs: The stages that it reads.
        before: Their lineage over base tables, by number.
    """
    columns = tuple(
        ColumnLineage(
            column.name,
            _values(column.values, before),
            _passed_on(column.values, before) | _deciders(column.deciders, before),
        )
        for column in own.columns
    )
    rows = _deciders(own.rows, before).union(*(before[i].rows for i in inputs))
    return Lineage(columns, rows, own.unknown)


def _values(sources: Iterable[Source], before: Sequence[Lineage]) -> frozenset[Source]:
    found: set[Source] = set()
    for source in sources:
        if isinstance(source, StageColumn):
            found |= before[source.stage_id].columns[source.position].values
        else:
            found.add(source)
    return frozenset(found)


def _passed_on(sources: Iterable[Source], before: Sequence[Lineage]) -> frozenset[Decider]:
    """Who decides on the columns of other stages among these."""
    found: set[Decider] = set()
    for source in sources:
        if isinstance(source, StageColumn):
            found |= before[source.stage_id].columns[source.position].deciders
    return frozenset(found)


def _deciders(deciders: Iterable[Decider], before: Sequence[Lineage]) -> frozenset[Decider]:
    found: set[Decider] = set()
    for source, role in deciders:
        found.update((table_column, role) for table_column in _values((source,), before))
        found |= _passed_on((source,), before)
    return frozenset(found)


def _of_text(graph: StageGraph, stage: Stage) -> Lineage:
    """The lineage of a stage that hands the whole query to Spark."""
    # The parser is heavy to import, and few graphs have such a stage.
    from stagecoach.planner.analysis.queries import build_logical
    from stagecoach.planner.syntax.parse import parse_query

    tables = [TableInfo(name, columns) for name, columns in graph.tables]
    catalog = MappingCatalog(tables, graph.functions)
    types = {parameter.name: parameter.dtype for parameter in graph.parameters}

    def traced() -> Lineage:
        built = build_logical(parse_query(stage.sql or ""), catalog, types)
        return trace(built.plan, built.shared)

    try:
        found = run_deep(traced)
        if len(found.columns) == len(graph.result) or not graph.result:
            return found
    except (SqlError, RecursionError):
        pass  # nothing lost: a query is one Spark stage because something in it is beyond us
    everything = frozenset(
        TableColumn(name, field.name) for name, columns in graph.tables for field in columns
    )
    reason = graph.fallback_reason or stage.engine_reason
    columns = tuple(ColumnLineage(field.name, everything, frozenset()) for field in graph.result)
    rows: frozenset[Decider] = frozenset((source, "read") for source in everything)
    return Lineage(columns, rows, f"the whole query runs on Spark: {reason}")
