"""Logical and physical plans → indented text, one operator a line, inputs below their consumer.

In: a plan. Out: lines such as `HashJoinExec: kind=inner, on=[o_custkey = c_custkey]`. Operators are
named as in DataFusion. A column shows its number (`n_name#7`) only where its name alone would be
ambiguous in the plan; plans of subqueries are drawn below the operator that holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.errors import InternalPlanError
from planner.expression_text import ExpressionText
from planner.expressions import (
    TRUE,
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    SortKey,
    SubqueryExpression,
)
from planner.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    OneRow,
    Project,
    Scan,
    Sort,
    Union,
)
from planner.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    OneRowExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
)
from planner.tree import walk

Plan = LogicalPlan | PhysicalPlan
_INDENT = "  "


def render_plan(plan: Plan) -> str:
    """The plan as text, without a newline at the end."""
    return "\n".join(plan_lines(plan))


def plan_lines(plan: Plan, inputs: dict[int, str] | None = None) -> list[str]:
    """The plan, a line an operator.

    Args:
        plan: A logical plan, or a physical one with or without exchanges.
        inputs: What to say of the output of a stage, by its number.
    """
    if isinstance(plan, LogicalPlan):
        return list(_LogicalText(plan).lines(plan))
    return list(_PhysicalText(plan, inputs or {}).lines(plan))


def column_names(plan: Plan) -> dict[int, str]:
    """Names of all columns by number; those that are ambiguous somewhere end in `#<number>`."""
    if isinstance(plan, LogicalPlan):
        return _names([*_with_subplans(plan)])
    return _names([*walk(plan)])


def _names(nodes: Sequence[Plan]) -> dict[int, str]:
    names: dict[int, str] = {}
    ambiguous: set[int] = set()
    for node in nodes:
        for column in node.columns:
            names.setdefault(column.id, column.name)
    for node in nodes:
        ambiguous |= _clashes(node.columns)
        ambiguous |= _clashes([*_read(node), *(c for x in node.children for c in x.columns)])
    return {i: f"{name}#{i}" if i in ambiguous else name for i, name in names.items()}


def _read(node: Plan) -> Iterator[Column]:
    """The columns that an operator's expressions read, those of an outer query included."""
    for expr in node.expressions:
        for part in walk(expr):
            if isinstance(part, ColumnRef):
                yield Column(part.id, part.name, part.dtype)


def _clashes(columns: Sequence[Column]) -> set[int]:
    """Numbers of the columns that share their name with another one."""
    by_name: dict[str, set[int]] = {}
    for column in columns:
        by_name.setdefault(column.name.lower(), set()).add(column.id)
    return {i for ids in by_name.values() if len(ids) > 1 for i in ids}


def _with_subplans(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    stack = [plan]
    while stack:
        for node in walk(stack.pop()):
            yield node
            stack.extend(subquery.plan for subquery in _subqueries(node))


def _subqueries(node: LogicalPlan) -> list[SubqueryExpression]:
    """The subquery expressions of an operator, each once, left to right."""
    found = (e for expr in node.expressions for e in walk(expr))
    return list(dict.fromkeys(e for e in found if isinstance(e, SubqueryExpression)))


class _Text:
    """What both kinds of plan share."""

    def __init__(self, names: dict[int, str], text: ExpressionText) -> None:
        self._names = names
        self._text = text

    def columns(self, columns: Sequence[Column]) -> str:
        return ", ".join(self._names[c.id] for c in columns)

    def items(self, items: Sequence[tuple[Column, Expression]]) -> str:
        return ", ".join(self._item(column, expr) for column, expr in items)

    def _item(self, column: Column, expr: Expression) -> str:
        text, name = self._text(expr), self._names[column.id]
        return text if text == name else f"{text} AS {name}"

    def keys(self, keys: Sequence[SortKey]) -> str:
        return ", ".join(self._text.sort_key(k) for k in keys)

    def grouping(
        self,
        groups: Sequence[tuple[Column, Expression]],
        aggregates: Sequence[tuple[Column, AggregateCall]],
    ) -> str:
        return f"gby=[{self.items(groups)}], aggr=[{self.items(aggregates)}]"

    def scan(self, table: str, columns: Sequence[Column], source: Sequence[str]) -> str:
        shown = (
            name if self._names[c.id] == name else f"{name} AS {self._names[c.id]}"
            for c, name in zip(columns, source, strict=True)
        )
        return f"table={table}, columns=[{', '.join(shown)}]"

    def union(self, outputs: Sequence[Column]) -> str:
        return f"columns=[{self.columns(outputs)}]"


def _bounds(limit: int | None, offset: int) -> str:
    parts = [f"skip={offset}"] if offset else []
    return ", ".join([*parts, f"fetch={limit}"] if limit is not None else parts)


class _LogicalText(_Text):
    def __init__(self, plan: LogicalPlan) -> None:
        self._labels: dict[SubqueryExpression, str] = {}
        names = column_names(plan)
        super().__init__(names, ExpressionText(names, self._label))

    def _label(self, subquery: SubqueryExpression) -> str:
        return self._labels.setdefault(subquery, f"subquery {len(self._labels) + 1}")

    def lines(self, plan: LogicalPlan) -> Iterator[str]:
        stack: list[tuple[LogicalPlan | str, int]] = [(plan, 0)]
        while stack:
            node, depth = stack.pop()
            if isinstance(node, str):
                yield _INDENT * depth + node
                continue
            yield _INDENT * depth + self.line(node)
            below: list[tuple[LogicalPlan | str, int]] = []
            for subquery in _subqueries(node):
                label = self._label(subquery)
                below.append((f"{label.capitalize()}:", depth + 1))
                below.append((subquery.plan, depth + 2))
            below.extend((child, depth + 1) for child in node.children)
            stack.extend(reversed(below))

    def line(self, node: LogicalPlan) -> str:
        match node:
            case OneRow():
                return "OneRow"
            case Scan():
                return f"Scan: {self.scan(node.table, node.outputs, node.source)}"
            case Filter():
                return f"Filter: {self._text(node.predicate)}"
            case Project():
                return f"Project: {self.items(node.items)}"
            case Aggregate():
                return f"Aggregate: {self.grouping(node.groups, node.aggregates)}"
            case Sort():
                return f"Sort: {self.keys(node.keys)}"
            case Limit():
                return f"Limit: {_bounds(node.limit, node.offset)}"
            case Join():
                on = "" if node.condition == TRUE else f", on={self._text(node.condition)}"
                return f"Join: kind={node.kind}{on}"
            case Union():
                return f"Union: {self.union(node.outputs)}"
        raise InternalPlanError(f"{type(node).__name__} has no text")


class _PhysicalText(_Text):
    def __init__(self, plan: PhysicalPlan, inputs: dict[int, str]) -> None:
        names = column_names(plan)
        super().__init__(names, ExpressionText(names))
        self._inputs = inputs

    def lines(self, plan: PhysicalPlan) -> Iterator[str]:
        stack: list[tuple[PhysicalPlan, int]] = [(plan, 0)]
        while stack:
            node, depth = stack.pop()
            yield _INDENT * depth + self.line(node)
            stack.extend((child, depth + 1) for child in reversed(node.children))

    def line(self, node: PhysicalPlan) -> str:
        match node:
            case OneRowExec():
                return "OneRowExec"
            case ScanExec():
                read = ", read=all" if node.read == "all" else ""
                return f"ScanExec: {self.scan(node.table, node.outputs, node.source)}{read}"
            case StageInputExec():
                said = self._inputs.get(node.stage_id, node.kind.capitalize())
                return f"[Stage {node.stage_id}] => {said}"
            case FilterExec():
                return f"FilterExec: {self._text(node.predicate)}"
            case ProjectionExec():
                return f"ProjectionExec: expr=[{self.items(node.items)}]"
            case AggregateExec():
                grouping = self.grouping(node.groups, node.aggregates)
                return f"AggregateExec: mode={node.mode}, {grouping}"
            case SortExec() | SortPreservingMergeExec():
                fetch = "" if node.fetch is None else f" fetch={node.fetch}"
                return f"{type(node).__name__}: [{self.keys(node.keys)}]{fetch}"
            case LimitExec():
                return f"LimitExec: {_bounds(node.limit, node.offset)}"
            case HashJoinExec():
                return f"HashJoinExec: {self._join(node)}"
            case UnionExec():
                return f"UnionExec: {self.union(node.outputs)}"
            case ExchangeExec():
                return f"ExchangeExec: {self._exchange(node)}"
        raise InternalPlanError(f"{type(node).__name__} has no text")

    def _join(self, node: HashJoinExec) -> str:
        pairs = zip(node.left_keys, node.right_keys, strict=True)
        parts = [
            f"kind={node.kind}",
            f"on=[{', '.join(f'{self._text(a)} = {self._text(b)}' for a, b in pairs)}]",
        ]
        if node.residual != TRUE:
            parts.append(f"filter={self._text(node.residual)}")
        if node.build_inline:
            parts.append("build=inline")
        elif node.broadcast:
            parts.append("build=broadcast")
        return ", ".join(parts)

    def _exchange(self, node: ExchangeExec) -> str:
        by_id = {c.id: c for c in node.child.columns}
        if node.kind != "shuffle":
            return f"kind={node.kind}"
        keys = self.columns([by_id[k] for k in node.keys])
        return f"kind=shuffle, keys=[{keys}], partitions={node.num_partitions}"
