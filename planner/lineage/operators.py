"""Trace columns through the operators of a logical or physical plan.

Column numbers are unique in a plan, so one table of known columns serves all operators, inputs
first. A column that decides on rows anywhere in the plan decides on the rows of its output, so
those columns form one set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.lineage.model import (
    ColumnLineage,
    Decider,
    Lineage,
    Role,
    Source,
    StageColumn,
    TableColumn,
)
from stagecoach.planner.plan.early_filters import asked_of_rows
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    Lambda,
    WindowCall,
)
from stagecoach.planner.plan.logical import (
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Scan,
    SharedScan,
    Union,
)
from stagecoach.planner.plan.operators import (
    NamedExpression,
    WithBounds,
    WithGenerator,
    WithGroups,
    WithItems,
    WithPredicate,
    WithProjections,
    WithRows,
    WithSortKeys,
    WithTasks,
    WithWindowCalls,
)
from stagecoach.planner.plan.physical import (
    AggregateExec,
    BloomBuildExec,
    BloomProbeExec,
    ExchangeExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ScanExec,
    SharedScanExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.shared import SharedPlan
from stagecoach.planner.plan.subqueries import Exists, SubqueryExpression
from stagecoach.planner.tree import walk

Plan = LogicalPlan | PhysicalPlan
_Known = tuple[frozenset[Source], frozenset[Decider]]

_NOTHING: _Known = (frozenset(), frozenset())


def trace(plan: Plan, shared: Sequence[SharedPlan] = ()) -> Lineage:
    """The lineage of a plan's output over its leaves: tables, and outputs of other stages.

    Args:
        plan: The plan.
        shared: The shared subplans that it scans, each after those that it scans itself.
    """
    tracer = _Tracer(subqueries=isinstance(plan, LogicalPlan))
    for part in shared:
        tracer.visit(part.plan)
        tracer.shared[part.name] = part.columns
    tracer.visit(plan)
    columns = tuple(ColumnLineage(c.name, *tracer.known(c)) for c in plan.columns)
    return Lineage(columns, frozenset(tracer.rows))


class _Tracer:
    """What is known of the columns of the operators visited so far, and who decides on rows.

    Args:
        subqueries: Whether expressions may hold plans; a physical plan has none.
    """

    def __init__(self, *, subqueries: bool) -> None:
        self._subqueries = subqueries
        self.rows: set[Decider] = set()
        self.shared: dict[str, Mapping[str, Column]] = {}
        self._columns: dict[int, _Known] = {}
        self._outputs: dict[Plan, list[_Known]] = {}

    def known(self, column: Column) -> _Known:
        """Where a column comes from."""
        return self._columns[column.id]

    def visit(self, plan: Plan) -> None:
        """Note the columns of a plan, inputs first."""
        # Inputs of a union may have the numbers of each other, if they are the same exchange.
        kept = {c for n in walk(plan) if isinstance(n, UnionExec | Union) for c in n.children}
        for node in _inputs_first(plan):
            self._operator(node)
            if node in kept:
                self._outputs[node] = [self.known(column) for column in node.columns]

    def _operator(self, node: Plan) -> None:
        match node:
            case SharedScan() | SharedScanExec():
                for column, name in zip(node.outputs, node.source, strict=True):
                    self._columns[column.id] = self.known(self.shared[node.table][name])
            case ScanExec() | Scan():
                for column, name in zip(node.outputs, node.source, strict=True):
                    source = TableColumn(node.table, name)
                    self._columns[column.id] = (frozenset((source,)), frozenset())
            case StageInputExec():
                for position, column in enumerate(node.outputs):
                    stage_column = StageColumn(node.stage_id, position)
                    self._columns[column.id] = (frozenset((stage_column,)), frozenset())
            case WithItems():
                self._define(node.items)
            case WithPredicate():
                self._decide((asked_of_rows(node.predicate),), "filter")
            case HashJoinExec() | Join():
                self._decide(node.expressions, "join")
            case BloomBuildExec():
                made = _merged([self._of(key) for key in node.keys or _refs(node.child)])
                self._columns.update((column.id, made) for column in node.outputs)
            case BloomProbeExec():
                self._decide((*node.keys, *_refs(node.right)), "join")
            case WithGroups():
                self._aggregate(node)
            case WithSortKeys():
                self._decide(node.expressions, "sort")
            case WithWindowCalls():
                for column, call in node.calls:
                    self._columns[column.id] = self._window(call)
            case UnionExec() | Union():
                inputs = [self._outputs[child] for child in node.inputs]
                for column, parts in zip(node.outputs, zip(*inputs, strict=True), strict=True):
                    self._columns[column.id] = _merged(parts)
            case WithGenerator():
                made = self._of(node.generator)
                self._decide((node.generator,), "generate")
                self._columns.update((column.id, made) for column in node.outputs)
            case WithProjections():
                self._stack(node.outputs, node.projections)
            case WithRows() | WithBounds():
                self._columns.update((column.id, _NOTHING) for column in node.outputs)
            case OneRowExec() | LimitExec() | ExchangeExec() | OneRow() | Limit() | WithTasks():
                pass  # no column of its own, and none that it reads
            case _:
                raise InternalPlanError(f"nothing is known of the lineage of {type(node).__name__}")

    def _aggregate(self, node: WithGroups) -> None:
        self._define(node.groups)
        # What a partial aggregate groups by, the final one does too, or it only drops duplicates.
        if not (isinstance(node, AggregateExec) and node.mode == "partial"):
            self._decide((expr for _, expr in node.groups), "group")
        for column, call in node.aggregates:
            self._columns[column.id] = self._aggregated(call)

    def _aggregated(self, call: AggregateCall) -> _Known:
        values, deciders = _merged([self._of(arg) for arg in call.args])
        where = () if call.where is None else (call.where,)
        found = self._deciders(where, "filter")
        found |= self._deciders((key.expr for key in call.order), "sort")
        return values, deciders | found

    def _window(self, call: WindowCall) -> _Known:
        values, deciders = _merged([self._of(arg) for arg in call.args])
        where = () if call.where is None else (call.where,)
        found = self._deciders(where, "filter")
        found |= self._deciders((*call.partition, *(key.expr for key in call.order)), "window")
        return values, deciders | found

    def _define(self, items: Iterable[NamedExpression]) -> None:
        for column, expr in items:
            self._columns[column.id] = self._of(expr)

    def _stack(self, outputs: Sequence[Column], rows: Sequence[tuple[Expression, ...]]) -> None:
        for position, column in enumerate(outputs):
            self._columns[column.id] = _merged([self._of(row[position]) for row in rows])

    def _decide(self, expressions: Iterable[Expression], role: Role) -> None:
        self.rows |= self._deciders(expressions, role)

    def _deciders(self, expressions: Iterable[Expression], role: Role) -> set[Decider]:
        """Who decides where these expressions do: their columns, and who decides on those."""
        found: set[Decider] = set()
        for expr in expressions:
            values, deciders = self._of(expr)
            found.update((source, role) for source in values)
            found |= deciders
        return found

    def _of(self, expr: Expression) -> _Known:
        if isinstance(expr, ColumnRef):
            return self._columns[expr.id]
        if self._subqueries and any(isinstance(node, SubqueryExpression) for node in walk(expr)):
            return self._with_subqueries(expr)
        return _merged([self._columns[i] for i in expr.column_ids])  # computed once for each

    def _with_subqueries(self, expr: Expression) -> _Known:
        """An expression of a logical plan that has not been unnested."""
        parts: list[_Known] = []
        bound: set[int] = set()
        for node in walk(expr):
            if isinstance(node, Lambda):
                bound |= {parameter.id for parameter in node.parameters}
            elif isinstance(node, ColumnRef) and node.id not in bound:
                parts.append(self._columns[node.id])
            elif isinstance(node, SubqueryExpression):
                self.visit(node.plan)
                if not isinstance(node, Exists):
                    parts += [self.known(column) for column in node.plan.columns]
        return _merged(parts)


def _merged(parts: Sequence[_Known]) -> _Known:
    if not parts:
        return _NOTHING
    if len(parts) == 1:
        return parts[0]
    values = frozenset[Source]().union(*(values for values, _ in parts))
    return values, frozenset[Decider]().union(*(deciders for _, deciders in parts))


def _refs(plan: Plan) -> tuple[ColumnRef, ...]:
    return tuple(column.ref for column in plan.columns)


def _inputs_first(plan: Plan) -> Iterator[Plan]:
    """Every operator after its inputs, which are visited left to right."""
    stack: list[tuple[Plan, bool]] = [(plan, False)]
    while stack:
        node, entered = stack.pop()
        if entered:
            yield node
            continue
        stack.append((node, True))
        children: tuple[Plan, ...] = node.children
        stack.extend((child, False) for child in reversed(children))
