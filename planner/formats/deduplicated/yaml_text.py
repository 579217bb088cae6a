"""Chunk plans as YAML, for EXPLAIN and for tests.

    FilterExec:
      expr: tag > 0
      child:
        DeduplicateExec:
          UnionExec:
            - RecordBatchesExec:
                chunks: [c1]
            - ParquetExec:
                files: [[c2, c3], [c4]]
                store: A

An operator without parameters has its input right below its name. Of chunks the text holds the ids.
"""

from __future__ import annotations

from stagecoach.planner.formats.deduplicated.context import ChunkContext
from stagecoach.planner.formats.deduplicated.plan import (
    ChunkPlan,
    DeduplicateExec,
    EmptyExec,
    FilterExec,
    ParquetExec,
    ProjectionExec,
    RecordBatchesExec,
    UnionExec,
)
from stagecoach.planner.plan.encoding import Json
from stagecoach.planner.plan.expression_text import ExpressionText
from stagecoach.planner.plan.expressions import (
    TRUE,
)
from stagecoach.planner.text.yaml_text import to_yaml


def plan_to_yaml(plan: ChunkPlan, context: ChunkContext) -> str:
    """The plan as YAML text."""
    return to_yaml(plan_to_data(plan, context))


def plan_to_data(plan: ChunkPlan, context: ChunkContext) -> Json:
    """The plan as plain data: objects of one key, the operator's name."""
    text = ExpressionText({i: f.name for i, f in enumerate(context.table.columns)})
    return _Writer(context, text).node(plan)


class _Writer:
    def __init__(self, context: ChunkContext, text: ExpressionText) -> None:
        self._context = context
        self._text = text

    def node(self, plan: ChunkPlan) -> Json:
        name = type(plan).__name__
        match plan:
            case UnionExec():
                return {name: [self.node(child) for child in plan.inputs]}
            case FilterExec():
                return {name: {"expr": self._text(plan.predicate), "child": self.node(plan.child)}}
            case ProjectionExec():
                return {name: {"keep": ", ".join(plan.keep), "child": self.node(plan.child)}}
            case DeduplicateExec():
                return {name: self._dedup(plan)}
            case EmptyExec():
                return {name: {"schema": ", ".join(plan.schema)}}
            case RecordBatchesExec():
                return {name: self._batches(plan)}
            case ParquetExec():
                return {name: self._parquet(plan)}
        return name

    def _dedup(self, plan: DeduplicateExec) -> Json:
        body: dict[str, Json] = {}
        if plan.key != self._context.table.primary_key:
            body["key"] = ", ".join(plan.key)
        if plan.is_fused:
            body["fused"] = True
        child = self.node(plan.child)
        return {**body, "child": child} if body else child

    def _batches(self, plan: RecordBatchesExec) -> Json:
        body: dict[str, Json] = {"chunks": [c.chunk_id for c in plan.batches]}
        if plan.schema != self._context.table.column_names:
            body["schema"] = ", ".join(plan.schema)
        return body

    def _parquet(self, plan: ParquetExec) -> Json:
        files: list[Json] = [[c.chunk_id for c in group.chunks] for group in plan.file_groups]
        body: dict[str, Json] = {"files": files}
        orders = [", ".join(group.order) for group in plan.file_groups]
        if any(orders):
            body["orders"] = list(orders)
        if plan.store != "file":
            body["store"] = plan.store
        if plan.predicate != TRUE:
            body["predicate"] = self._text(plan.predicate)
        if plan.projection is not None:
            body["projection"] = ", ".join(plan.projection)
        return body
