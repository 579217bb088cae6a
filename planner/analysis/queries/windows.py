"""Build the window functions of a SELECT as operators below its select list.

Also here: QUALIFY, and the names that Spark gives to window columns without an alias.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.analysis.names import column_name
from stagecoach.planner.analysis.queries.conditions import condition_of
from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.queries.replacing import exchanged
from stagecoach.planner.analysis.scalars.windows import named_windows, resolved_window
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Column,
    ColumnRef,
    Expression,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.logical import LogicalPlan, Window
from stagecoach.planner.syntax.parse import position
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk
from stagecoach.planner.windows.registry import WINDOW_FUNCTIONS

Items = list[tuple[str, Expression]]


def plan_windows(
    context: BuildContext, plan: LogicalPlan, expressions: list[Expression]
) -> tuple[LogicalPlan, list[Expression]]:
    """The operators that compute all window calls, and the expressions rewritten over them.

    Calls with the same partition keys share an operator. A call that reads another one stands
    above it; of the others, those with fewer keys stand below, because rows that are partitioned
    by some keys are partitioned by more keys too, and those without keys stand on top.
    """
    while calls := _innermost(expressions):
        replaced: dict[Expression, Expression] = {}
        for group in _by_partition(calls):
            columns = [(context.column(call.function, call.dtype), call) for call in group]
            partition = group[0].partition
            same = tuple((c, replace(call, partition=partition)) for c, call in columns)
            plan = Window(plan, same)
            replaced |= {call: column.ref for column, call in columns}
        expressions = [exchanged(e, replaced) for e in expressions]
    return plan, expressions


def _innermost(expressions: Iterable[Expression]) -> list[WindowCall]:
    """Window calls that hold no other one, each once."""
    found = dict.fromkeys(
        part
        for expr in expressions
        for part in walk(expr)
        if isinstance(part, WindowCall)
        and not any(contains(child, WindowCall) for child in part.children)
    )
    return list(found)


def _by_partition(calls: Sequence[WindowCall]) -> list[list[WindowCall]]:
    groups: dict[frozenset[Expression], list[WindowCall]] = {}
    for call in calls:
        groups.setdefault(frozenset(call.partition), []).append(call)
    ordered = sorted(groups.items(), key=lambda item: len(item[0]) or 1 << 20)
    return [group for _, group in ordered]


def check_place(expr: Expression, node: exp.Expr) -> None:
    """Refuse a window function inside an aggregate.

    Raises:
        AnalysisError: With the place of the select item.
    """
    for part in walk(expr):
        if isinstance(part, AggregateCall) and any(contains(c, WindowCall) for c in part.children):
            raise misplaced(node, "inside an aggregate; compute it in a subquery")


def misplaced(node: exp.Expr, where: str) -> AnalysisError:
    """The error for a window function where none may stand."""
    line, column = position(next(node.find_all(exp.Window), node))
    return AnalysisError(f"a window function {where}", line=line, column=column)


# ---------------------------------------------------------------- QUALIFY


def qualify_condition(node: exp.Select, scope: Scope, items: Items) -> list[Expression]:
    """The QUALIFY condition, as a list of none or one; it sees the select list's aliases.

    Raises:
        AnalysisError: If the SELECT has no window function.
        UnsupportedSqlError: For a name that is both a column and another select item, or an
            aggregate that is not a select item.
    """
    clause = node.args.get("qualify")
    if clause is None:
        return []
    outputs = {name.lower(): expr for name, expr in reversed(items)}
    late = replace(scope, aliases=outputs, windows=named_windows(node), aliases_in_windows=True)
    for named in clause.find_all(exp.Column):
        alias = outputs.get(named.name.lower())
        if alias is not None and not named.table and _hides(scope, named, alias):
            with located(named):
                raise UnsupportedSqlError(f"'{named.name}' in QUALIFY is a column and an alias")
    condition = condition_of(clause.this, late, "QUALIFY")
    if not any(contains(e, WindowCall) for e in (condition, *outputs.values())):
        line, column = position(clause)
        text = "QUALIFY needs a window function in it or in the select list"
        raise AnalysisError(text, line=line, column=column)
    selected: dict[Expression, Expression] = {e: Column(-1, n, e.dtype).ref for n, e in items}
    if contains(exchanged(condition, selected), AggregateCall):
        with located(clause):
            raise UnsupportedSqlError("an aggregate in QUALIFY that is not selected")
    return [condition]


def _hides(scope: Scope, column: exp.Column, alias: Expression) -> bool:
    try:
        found = replace(scope, aliases={}).column(column)
    except AnalysisError:
        return False
    return isinstance(found, ColumnRef) and found != alias


# ---------------------------------------------------------------- names of columns


@column_name.register
def _(node: exp.IgnoreNulls | exp.RespectNulls) -> str:
    return column_name(node.this)


@column_name.register
def _(node: exp.Window) -> str:
    select = node.find_ancestor(exp.Select)
    window = resolved_window(node, named_windows(select) if select is not None else {})
    parts = []
    if keys := window.args.get("partition_by"):
        parts.append(f"PARTITION BY {', '.join(column_name(k) for k in keys)}")
    order = window.args.get("order")
    if order is not None:
        parts.append(f"ORDER BY {', '.join(_key_name(k) for k in order.expressions)}")
    parts.append(_frame_name(node, window))
    return f"{_function_name(node)} OVER ({' '.join(parts)})"


def _called(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Window | exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        node = node.this
    return node


def _function_name(node: exp.Window) -> str:
    called = _called(node)
    name = called.name.lower()
    args = [column_name(a) for a in called.expressions] if isinstance(called, exp.Anonymous) else []
    if name in ("rank", "dense_rank", "percent_rank"):
        return f"{name.upper()}()"
    if name == "ntile" and not args:
        return "ntile(1)"
    if name in ("lag", "lead"):
        return f"{name}({', '.join([*args, *['1', 'NULL'][len(args) - 1 :]])})"
    if name in ("first", "last", "first_value", "last_value", "any_value") and len(args) == 2:
        return f"{name}({args[0]})"
    text = column_name(node.this)
    return f"{text} ignore nulls" if name == "nth_value" and _ignores(node) else text


def _ignores(node: exp.Window) -> bool:
    return node.this.find(exp.IgnoreNulls) is not None


def _key_name(node: exp.Expr) -> str:
    ascending = not node.args.get("desc")
    first = node.args.get("nulls_first")
    nulls_first = ascending if first is None else bool(first)
    target = node.this if isinstance(node, exp.Ordered) else node
    direction = "ASC" if ascending else "DESC"
    return f"{column_name(target)} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _frame_name(node: exp.Window, window: exp.Window) -> str:
    name = _called(node).name.lower()
    known = WINDOW_FUNCTIONS.get(name)
    if known is not None and known.frame == "none":
        offset = _shift_of(node, name)
        return f"ROWS BETWEEN {offset} FOLLOWING AND {offset} FOLLOWING"
    running = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    if known is not None and known.frame in ("rows", "range"):
        return f"{known.frame.upper()} {running}"
    spec = window.args.get("spec")
    if spec is not None:
        start, end = (_bound_name(spec, key) for key in ("start", "end"))
        return f"{str(spec.args.get('kind')).upper()} BETWEEN {start} AND {end}"
    if window.args.get("order") is not None:
        return f"RANGE {running}"
    return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _shift_of(node: exp.Window, name: str) -> str:
    """The frame of `lag` and `lead` is the one row that they look at."""
    args = _called(node).expressions
    text = column_name(args[1]) if len(args) > 1 else "1"
    if name == "lead" or text == "0":
        return text
    return text[1:] if text.startswith("-") else f"-{text}"


def _bound_name(spec: exp.Expr, key: str) -> str:
    value = spec.args.get(key)
    if value is None or value == "CURRENT ROW":
        return "CURRENT ROW"
    side = str(spec.args.get(f"{key}_side")).upper()
    if isinstance(value, exp.Interval):
        return f"INTERVAL '{value.this.name}' {str(value.unit).upper().removesuffix('S')} {side}"
    return f"{value if isinstance(value, str) else column_name(value)} {side}"
