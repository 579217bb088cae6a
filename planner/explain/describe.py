"""Describe the operators of a plan as rows of text parts, for every format of `explain`.

An operator without a description of its own is described by the fields of its dataclass, so a new
operator is never missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.distribution.reasons import reason_of
from stagecoach.planner.plan.expression_text import ExpressionText
from stagecoach.planner.plan.expressions import TRUE, Column, ColumnRef, Expression, SortKey
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Sort,
    Union,
)
from stagecoach.planner.plan.operators import Operator
from stagecoach.planner.plan.physical import (
    AggregateExec,
    ExchangeExec,
    FilterExec,
    HashJoinExec,
    LimitExec,
    PhysicalPlan,
    ProjectionExec,
    ScanExec,
    SortExec,
    SortPreservingMergeExec,
    StageInputExec,
    UnionExec,
)
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.tree import walk

Plan = LogicalPlan | PhysicalPlan
Size = tuple[float, float]
Sizer = Callable[[int, Plan], Size | None]
_MOST_ITEMS = 5  # of a part that may hold thousands, such as the rows of VALUES


@dataclass(frozen=True)
class Part:
    """One thing that is said of an operator.

    Args:
        key: What it is, such as `predicate`.
        value: Text, a number, or the texts of a list.
        line: How a line of text shows it, where `key=value` would not do.
    """

    key: str
    value: str | int | tuple[str, ...]
    line: str | None = None

    @property
    def text(self) -> str:
        """The part as a line of text shows it."""
        if self.line is not None:
            return self.line
        value = f"[{', '.join(self.value)}]" if isinstance(self.value, tuple) else self.value
        return f"{self.key}={value}"


_ONCE = Part("computed", "once for all places")


@dataclass(frozen=True)
class Row:
    """An operator, or the label of a subquery's plan.

    Args:
        depth: 0 for the root.
        role: What it is to the operator that it belongs to: `child`, `left`, `inputs`, ….
        name: Its name; the text of a label.
        parts: What is said of it.
        size: Estimated rows and bytes, where known.
        is_label: Whether it only stands above the plan of a subquery.
        whole: The line of text, where it is not made of name and parts.
    """

    depth: int
    role: str
    name: str
    parts: tuple[Part, ...] = ()
    size: Size | None = None
    is_label: bool = False
    whole: str | None = None

    @property
    def line(self) -> str:
        """The row as text, without its depth and its size."""
        if self.whole is not None:
            return self.whole
        if self.is_label:
            return f"{self.name}:"
        said = ", ".join(text for part in self.parts if (text := part.text))
        return f"{self.name}: {said}" if said else self.name


def describe(
    plan: Plan,
    *,
    inputs: Mapping[int, str] | None = None,
    sizes: Sizer | None = None,
    once: Collection[Plan] = (),
) -> list[Row]:
    """The operators of a plan, parents first, inputs left to right.

    Args:
        plan: A logical plan, or a physical one with or without exchanges.
        inputs: What to say of the output of a stage, by its number.
        sizes: The size of an operator, given its position among the rows (labels left out).
        once: Parts that stand in several places and are computed once.
    """
    writer = _Writer(plan, inputs or {})
    rows: list[Row] = []
    stack: list[tuple[Plan | str, int, str]] = [(plan, 0, "")]
    position = 0
    while stack:
        node, depth, role = stack.pop()
        if isinstance(node, str):
            rows.append(Row(depth, role, node, is_label=True))
            continue
        size = sizes(position, node) if sizes is not None else None
        position += 1
        name, parts = writer.operator(node)
        if node in once:
            parts = (*parts, _ONCE)
        whole = None
        if isinstance(node, StageInputExec):
            whole = f"[Stage {node.stage_id}] => {writer.output(node)}"
        rows.append(Row(depth, role, name, parts, size, whole=whole))
        below: list[tuple[Plan | str, int, str]] = []
        for subquery in subqueries(node):
            label = writer.label(subquery)
            below.append((label.capitalize(), depth + 1, label))
            below.append((subquery.plan, depth + 2, "child"))
        below += [(child, depth + 1, role) for role, child in _children(node)]
        stack.extend(reversed(below))
    return rows


def column_names(plan: Plan) -> dict[int, str]:
    """Names of all columns by number; those that are ambiguous somewhere end in `#<number>`."""
    nodes = list(_with_subplans(plan))
    read = [list(_read(node)) for node in nodes]
    names = {column.id: column.name for node in reversed(nodes) for column in node.columns}
    known = set(names.items()).union((c.id, c.name) for columns in read for c in columns)
    if len({name.lower() for _, name in known}) == len(known):
        return names  # as mostly; then no operator need be looked at
    ambiguous: set[int] = set()
    for node, columns in zip(nodes, read, strict=True):
        ambiguous |= _clashes(node.columns)
        ambiguous |= _clashes([*columns, *(c for x in node.children for c in x.columns)])
    return {i: f"{name}#{i}" if i in ambiguous else name for i, name in names.items()}


def subqueries(node: Plan) -> list[SubqueryExpression]:
    """The subquery expressions of an operator, each once, left to right."""
    found = (e for expr in node.expressions for e in walk(expr))
    return list(dict.fromkeys(e for e in found if isinstance(e, SubqueryExpression)))


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


def _with_subplans(plan: Plan) -> Iterator[Plan]:
    stack: list[Plan] = [plan]
    while stack:
        for node in walk(stack.pop()):
            yield node
            stack.extend(subquery.plan for subquery in subqueries(node))


def _children(node: Plan) -> list[tuple[str, Plan]]:
    """The inputs of an operator, each with the name of the field that holds it."""
    roles: list[str] = []
    for item in dataclasses.fields(node):
        value = getattr(node, item.name)
        values = value if isinstance(value, tuple) else (value,)
        roles.extend(item.name for child in values if isinstance(child, Operator))
    return list(zip(roles, node.children, strict=True))


class _Writer:
    """Names and parts of the operators of one plan."""

    def __init__(self, plan: Plan, inputs: Mapping[int, str]) -> None:
        self._names = column_names(plan)
        self._inputs = inputs
        self._labels: dict[SubqueryExpression, str] = {}
        self._text = ExpressionText(self._names, self.label)

    def label(self, subquery: SubqueryExpression) -> str:
        return self._labels.setdefault(subquery, f"subquery {len(self._labels) + 1}")

    def output(self, node: StageInputExec) -> str:
        return self._inputs.get(node.stage_id, node.kind.capitalize())

    def operator(self, node: Plan) -> tuple[str, tuple[Part, ...]]:
        name = type(node).__name__
        match node:
            case Scan() | ScanExec():
                return name, self._scan(node)
            case StageInputExec():
                return name, (Part("stage", node.stage_id), Part("output", self.output(node)))
            case Filter() | FilterExec():
                text = self._text(node.predicate)
                return name, (Part("predicate", text, text),)
            case Project():
                items = self._items(node.items)
                return name, (Part("expr", items, ", ".join(items)),)
            case ProjectionExec():
                return name, (Part("expr", self._items(node.items)),)
            case Aggregate() | AggregateExec():
                mode = (Part("mode", node.mode),) if isinstance(node, AggregateExec) else ()
                groups, calls = self._items(node.groups), self._items(node.aggregates)
                ranges = self._ranges(node) if isinstance(node, AggregateExec) else ()
                return name, (*mode, Part("gby", groups), Part("aggr", calls), *ranges)
            case Sort():
                keys = self._keys(node.keys)
                return name, (Part("keys", keys, ", ".join(keys)),)
            case SortExec() | SortPreservingMergeExec():
                return name, _sort(self._keys(node.keys), node.fetch)
            case Limit() | LimitExec():
                return name, _bounds(node.limit, node.offset)
            case Join():
                on = () if node.condition == TRUE else (Part("on", self._text(node.condition)),)
                return name, (Part("kind", node.kind), *on)
            case HashJoinExec():
                return name, self._join(node)
            case Union() | UnionExec():
                return name, (Part("columns", self._columns(node.outputs)),)
            case ExchangeExec():
                return name, self._exchange(node)
        return name, self._fields(node)

    def _columns(self, columns: Sequence[Column]) -> tuple[str, ...]:
        return tuple(self._names.get(c.id, c.name) for c in columns)

    def _items(self, items: Sequence[tuple[Column, Expression]]) -> tuple[str, ...]:
        return tuple(self._item(column, expr) for column, expr in items)

    def _item(self, column: Column, expr: Expression) -> str:
        text, name = self._text(expr), self._names.get(column.id, column.name)
        return text if text == name else f"{text} AS {name}"

    def _keys(self, keys: Sequence[SortKey]) -> tuple[str, ...]:
        return tuple(self._text.sort_key(k) for k in keys)

    def _scan(self, node: Scan | ScanExec) -> tuple[Part, ...]:
        shown = tuple(
            name if self._names[c.id] == name else f"{name} AS {self._names[c.id]}"
            for c, name in zip(node.outputs, node.source, strict=True)
        )
        known = {"table", "outputs", "source", "read"}
        read = (Part("read", "all"),) if getattr(node, "read", "") == "all" else ()
        rest = self._fields(node, known)
        return (Part("table", node.table), Part("columns", shown), *rest, *read)

    def _join(self, node: HashJoinExec) -> tuple[Part, ...]:
        on = tuple(
            f"{self._text(a)} {'<=>' if null_safe else '='} {self._text(b)}"
            for a, b, null_safe in node.key_pairs
        )
        parts = [Part("kind", node.kind), Part("on", on)]
        if node.residual != TRUE:
            parts.append(Part("filter", self._text(node.residual)))
        if node.build_inline:
            parts.append(Part("build", "inline"))
        elif node.broadcast:
            parts.append(Part("build", "broadcast"))
        known = {"kind", "left_keys", "right_keys", "residual", "broadcast", "build_inline"}
        known.add("null_safe")
        return (*parts, *self._fields(node, known))

    def _ranges(self, node: AggregateExec) -> tuple[Part, ...]:
        """How many ranges of a group key are taken one after the other."""
        if not node.range_ends:
            return ()
        key = self._text(node.groups[node.range_group][1])
        text = f"{len(node.range_ends) + 1} of {key}"
        return (Part("ranges", text),)

    def _exchange(self, node: ExchangeExec) -> tuple[Part, ...]:
        why = reason_of(node)
        reason = Part("reason", why, f"-- {why}")
        if node.kind != "shuffle":
            return (Part("kind", node.kind, f"kind={node.kind} {reason.line}"), _silent(reason))
        by_id = {c.id: c for c in node.child.columns}
        keys = self._columns([by_id[k] for k in node.keys])
        count = node.num_partitions
        return (
            Part("kind", "shuffle"),
            Part("keys", keys),
            Part("partitions", count, f"partitions={count} {reason.line}"),
            _silent(reason),
        )

    # ------------------------------------------------------------ any other operator

    def _fields(self, node: Plan, known: Collection[str] = ()) -> tuple[Part, ...]:
        """What the fields of an operator hold, its inputs and unset ones left out."""
        parts: list[Part] = []
        for item in dataclasses.fields(node):
            value = getattr(node, item.name)
            if item.name in known or _is_plan(value) or _is_unset(value, item):
                continue
            key = "columns" if item.name == "outputs" else item.name
            text = self._any(value)
            parts.append(Part(key, text if isinstance(value, tuple) else str(text)))
        return tuple(parts)

    def _any(self, value: Any) -> Any:
        match value:
            case Column():
                return self._names.get(value.id, value.name)
            case Expression():
                return self._text(value)
            case SortKey():
                return self._text.sort_key(value)
            case (Column() as column, Expression() as expr):
                return self._item(column, expr)
            case tuple():
                return tuple(self._some(value))
            case bool():
                return str(value).lower()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            said = (f"{f.name}={_joined(self._any(getattr(value, f.name)))}" for f in fields)
            return f"({', '.join(said)})"
        return str(value)

    def _some(self, values: tuple[Any, ...]) -> Iterator[str]:
        # Columns and expressions are all shown; rows of values may be thousands.
        nested = bool(values) and isinstance(values[0], tuple) and not _is_named(values[0])
        shown = values[:_MOST_ITEMS] if nested else values
        for value in shown:
            yield _joined(self._any(value))
        if len(shown) < len(values):
            yield f"… {len(values) - len(shown):,} more"


def _joined(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else f"({', '.join(value)})"


def _is_named(value: tuple[Any, ...]) -> bool:
    return len(value) == 2 and isinstance(value[0], Column) and isinstance(value[1], Expression)


def _is_plan(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(v, LogicalPlan | PhysicalPlan) for v in value)
    return isinstance(value, LogicalPlan | PhysicalPlan)


def _is_unset(value: object, item: dataclasses.Field[Any]) -> bool:
    return value is None or value is False or value in ((), TRUE) or value == item.default


def _silent(part: Part) -> Part:
    """A part that another one's line shows already."""
    return dataclasses.replace(part, line="")


def _sort(keys: tuple[str, ...], fetch: int | None) -> tuple[Part, ...]:
    line = f"[{', '.join(keys)}]"
    if fetch is None:
        return (Part("keys", keys, line),)
    return Part("keys", keys, f"{line} fetch={fetch}"), Part("fetch", fetch, "")


def _bounds(limit: int | None, offset: int) -> tuple[Part, ...]:
    skip = (Part("skip", offset),) if offset else ()
    fetch = (Part("fetch", limit),) if limit is not None else ()
    return (*skip, *fetch)


def sizes_in_order(rows: Sequence[int], num_bytes: Sequence[int]) -> Sizer:
    """Sizes that are listed in the order of the rows."""

    def size(position: int, _: Plan) -> Size | None:
        if position >= min(len(rows), len(num_bytes)):
            return None
        return rows[position], num_bytes[position]

    return size
