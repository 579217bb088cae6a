"""Build window calls: the function, its window and its frame.

Spark's default frame is written out, so later phases always see a complete one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from stagecoach.planner.aggregates import AGGREGATE_ALIASES, AGGREGATES, make_aggregate
from stagecoach.planner.analysis.scalars.calls import checked_arguments, ignores_nulls
from stagecoach.planner.analysis.scalars.handlers import Names, build_scalar, builds
from stagecoach.planner.analysis.scalars.intervals import DAY_MICROS
from stagecoach.planner.analysis.scalars.ordered_sets import sort_key
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.coercion import cast_literal, require_orderable
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    BoundKind,
    Expression,
    FrameBound,
    Literal,
    SortKey,
    WindowCall,
    WindowFrame,
    contains,
)
from stagecoach.planner.syntax.parse import position
from stagecoach.planner.types import BOOLEAN, INT, INTERVAL, INTERVAL_DAY, NULL, DataType
from stagecoach.planner.windows.registry import (
    ONLY_OVER,
    RUNNING_RANGE,
    WHOLE_PARTITION,
    WINDOW_FUNCTIONS,
    WindowFunction,
    window_function,
)

# Aggregates that Spark computes over whole partitions only.
_WHOLE_ONLY = ("median", "percentile_cont", "percentile_disc")

NamedWindows = Mapping[str, exp.Window]


@dataclass(frozen=True)
class _Function:
    """What stands before OVER."""

    name: str
    args: tuple[Expression, ...]
    dtype: DataType
    where: Expression | None = None
    ignore_nulls: bool = False


def window_call(node: exp.Window, names: Names, named: NamedWindows) -> WindowCall:
    """A window function with its window.

    Args:
        node: The call.
        names: What its parts see.
        named: The WINDOW clause of its SELECT.

    Raises:
        AnalysisError: For what Spark refuses too.
        UnsupportedSqlError: For what is not staged.
    """
    function = _function(node.this, names)
    window = resolved_window(node, named)
    partition = tuple(
        key
        for key in (build_scalar(p, names) for p in window.args.get("partition_by") or [])
        if not isinstance(key, Literal)
    )
    for key in partition:
        require_orderable(key.dtype, "PARTITION BY")
    order = _order(window, names)
    known = WINDOW_FUNCTIONS.get(function.name)
    if known is not None and known.ordered and not order:
        raise AnalysisError(f"window function '{function.name}' needs ORDER BY in its window")
    frame = _frame(window.args.get("spec"), order, names)
    if function.name in _WHOLE_ONLY and (order or frame not in (None, WHOLE_PARTITION)):
        raise AnalysisError(
            f"Cannot specify ORDER BY or a window frame for `{function.name}`.",
            condition="INVALID_WINDOW_SPEC_FOR_AGGREGATION_FUNC",
        )
    return WindowCall(
        dtype=function.dtype,
        function=function.name,
        args=function.args,
        partition=tuple(dict.fromkeys(partition)),
        order=order,
        frame=_fitting(function.name, known, frame, order),
        where=function.where,
        ignore_nulls=function.ignore_nulls,
    )


# ---------------------------------------------------------------- the function


def _function(node: exp.Expr, names: Names) -> _Function:
    ignore_nulls: bool | None = None
    where: exp.Expr | None = None
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        if isinstance(node, exp.Filter):
            where = node.expression.this
        else:
            ignore_nulls = isinstance(node, exp.IgnoreNulls)
        node = node.this
    if isinstance(node, exp.Any):  # the parser knows `= ANY (…)`, which is not Spark SQL
        node = exp.Anonymous(this="any", expressions=[node.this.unnest()])
    if not isinstance(node, exp.Anonymous):
        raise UnsupportedSqlError(f"{node.key} over a window is not staged")
    name = AGGREGATE_ALIASES.get(node.name.lower(), node.name.lower())
    operands = list(node.expressions)
    if operands and isinstance(operands[0], exp.Distinct):
        raise AnalysisError(f"DISTINCT is not allowed in '{name}' over a window")
    if any(isinstance(o, exp.IgnoreNulls | exp.RespectNulls) for o in operands):
        raise AnalysisError(f"IGNORE NULLS must follow the parentheses of '{name}'")
    if len(operands) == 1 and isinstance(operands[0], exp.Star):
        if name != "count":
            raise UnsupportedSqlError(f"{name}(*) over a window")
        operands = []
    elif name == "count" and not operands:
        raise AnalysisError("count needs an argument, such as *")
    args = tuple(build_scalar(o, names) for o in operands)
    known = WINDOW_FUNCTIONS.get(name)
    if known is not None and known.is_aggregate and len(args) == 2:
        ignore_nulls, args = ignores_nulls(name, args[1]), args[:1]
    if ignore_nulls and not (known is not None and known.skips_nulls):
        raise AnalysisError(f"'{name}' does not take IGNORE NULLS")
    if where is not None and name in ONLY_OVER:
        raise AnalysisError(f"'{name}' does not take FILTER")
    function = _typed(name, args)
    condition = _condition(where, names) if where is not None else None
    if condition is not None and function.where is not None:
        condition = make_call("and", function.where, condition)
    return replace(function, where=condition or function.where, ignore_nulls=bool(ignore_nulls))


def _typed(name: str, args: tuple[Expression, ...]) -> _Function:
    if name in WINDOW_FUNCTIONS:
        dtype, args = window_function(name, checked_arguments(name, args))
        if name in ("lag", "lead"):
            args = (*args[:2], _default(name, args[2], dtype))
        return _Function(name, args, dtype)
    args = checked_arguments(name, args)
    if name == "count_if" and len(args) == 1:
        call = make_aggregate("count", (), where=args[0])
    elif name in AGGREGATES and not isinstance(AGGREGATES[name].spark, str):
        if name == "count" and len(args) == 1 and isinstance(args[0], Literal):
            args = () if args[0].value is not None else args
        call = make_aggregate(name, args)
        if AGGREGATES[name].spark_template(call) is not None:
            raise UnsupportedSqlError(f"'{name}' over a window is not known to the planner")
    else:
        raise UnsupportedSqlError(f"'{name}' over a window is not known to the planner")
    return _Function(call.function, call.args, call.dtype, call.where)


def _default(name: str, node: Expression, dtype: DataType) -> Expression:
    """The default of `lag` or `lead`, which is cast to the type of the value."""
    result = cast_literal(node, dtype)
    if node.dtype not in (NULL, dtype) and not isinstance(result, Literal):
        raise UnsupportedSqlError(f"{name} of {dtype} with a default of {node.dtype}")
    return result


def _condition(node: exp.Expr, names: Names) -> Expression:
    condition = _boolean("FILTER", build_scalar(node, names))
    if contains(condition, WindowCall):
        line, column = position(node)
        text = "a window function is not allowed in FILTER"
        raise AnalysisError(text, line=line, column=column)
    return condition


def _boolean(what: str, node: Expression) -> Expression:
    if node.dtype not in (BOOLEAN, NULL):
        raise AnalysisError(f"{what} needs a boolean, found {node.dtype}")
    return cast_literal(node, BOOLEAN)


# ---------------------------------------------------------------- the window


def resolved_window(node: exp.Window, named: NamedWindows) -> exp.Window:
    """The node that holds the window of a call: itself, or an item of the WINDOW clause.

    A name of a name is followed once, as Spark does.

    Raises:
        AnalysisError: For a name that is not there, or is extended.
    """
    window = node
    for _ in range(3):
        name = window.args.get("alias")
        if name is None:
            return window
        if any(window.args.get(part) for part in ("partition_by", "order", "spec")):
            raise AnalysisError(f"window '{name.name}' cannot be extended; write the whole window")
        found = named.get(name.name)
        if found is None:
            known = ", ".join(named) or "none"
            raise AnalysisError(f"window '{name.name}' is not in the WINDOW clause (has: {known})")
        window = found
    raise AnalysisError("a named window refers to another reference; refer to a whole window")


def named_windows(node: exp.Select) -> NamedWindows:
    """The WINDOW clause of a SELECT; names are case-sensitive.

    Raises:
        AnalysisError: For a name that is defined twice.
    """
    found: dict[str, exp.Window] = {}
    for window in node.args.get("windows") or []:
        name = window.this.name
        if name in found:
            line, column = position(window)
            raise AnalysisError(f"window '{name}' is defined twice", line=line, column=column)
        found[name] = window
    return found


def _order(window: exp.Window, names: Names) -> tuple[SortKey, ...]:
    clause = window.args.get("order")
    return tuple(sort_key(item, names) for item in (clause.expressions if clause else []))


# ---------------------------------------------------------------- the frame


def _frame(spec: exp.Expr | None, order: tuple[SortKey, ...], names: Names) -> WindowFrame | None:
    """The frame that is written; None for the default."""
    if spec is None:
        return None
    unit = str(spec.args.get("kind") or "").upper()
    if unit not in ("ROWS", "RANGE"):
        raise AnalysisError(f"{unit or 'such'} frames are not Spark SQL; use ROWS or RANGE")
    if spec.args.get("exclude"):
        raise AnalysisError("EXCLUDE in a frame is not Spark SQL")
    ends = (("start", "start_side"), ("end", "end_side"))
    start, end = (_bound(spec.args.get(value), spec.args.get(side), names) for value, side in ends)
    both = (start.offset, end.offset)
    if unit == "RANGE":
        _check_range(start, end, order)
        key = order[0].expr.dtype if order else NULL
        start, end = (_distance(b, key) for b in (start, end))
    else:
        for offset in both:
            if offset is not None and offset.dtype != INT:
                raise AnalysisError(f"ROWS counts rows by an int, not by a {offset.dtype}")
    if start.kind == "unbounded_following" or end.kind == "unbounded_preceding":
        raise AnalysisError("the frame ends before it starts")
    if all(o is not None for o in both) and _position(start) > _position(end):
        raise AnalysisError("the frame ends before it starts")
    return WindowFrame("rows" if unit == "ROWS" else "range", _turned(start), _turned(end))


def _bound(value: exp.Expr | str | None, side: str | None, names: Names) -> FrameBound:
    if value is None or value == "CURRENT ROW":
        return FrameBound("current")
    forwards = str(side).upper() == "FOLLOWING"
    if isinstance(value, str):
        return FrameBound("unbounded_following" if forwards else "unbounded_preceding")
    offset = build_scalar(value, names)
    if offset.column_ids or contains(offset, AggregateCall):
        raise AnalysisError("the bound of a frame must be a constant")
    if not isinstance(offset, Literal):
        raise UnsupportedSqlError("the bound of a frame is computed")
    distances = offset.dtype.is_numeric or offset.dtype.is_interval or offset.dtype == INTERVAL
    if offset.value is None or not distances:
        raise AnalysisError(f"the bound of a frame cannot be a {offset.dtype}")
    return FrameBound("following" if forwards else "preceding", offset)


def _check_range(start: FrameBound, end: FrameBound, order: tuple[SortKey, ...]) -> None:
    whole = (start.kind, end.kind) == ("unbounded_preceding", "unbounded_following")
    if not order and not whole:
        raise AnalysisError("a RANGE frame needs ORDER BY in its window")
    by_value = start.offset is not None or end.offset is not None
    if by_value and len(order) != 1:
        raise AnalysisError("a RANGE by values needs exactly one sort key")
    kinds = {b.offset.dtype for b in (start, end) if b.offset is not None}
    if len(kinds) > 1 and not all(k.is_numeric for k in kinds):
        raise AnalysisError("the bounds of a frame must have the same type")


def _distance(bound: FrameBound, key: DataType) -> FrameBound:
    """The bound with its offset in the type that Spark adds to the sort key."""
    offset = bound.offset
    if offset is None:
        return bound
    if key.is_numeric and offset.dtype.is_numeric:
        return replace(bound, offset=_cast_offset(offset, key))
    if key.kind == "date" and offset.dtype == INT:
        return bound
    if key.kind == "date" and offset.dtype == INTERVAL_DAY:
        return replace(bound, offset=Literal(INT, int(_amount(offset)) // DAY_MICROS))
    if key.kind == "date" and offset.dtype.is_year_month:
        return bound
    if key.kind in ("timestamp", "timestamp_ntz") and offset.dtype.is_interval:
        return bound
    if offset.dtype == INTERVAL:
        raise UnsupportedSqlError("a frame by a calendar interval")
    raise AnalysisError(f"a RANGE of {offset.dtype} around a {key}")


def _cast_offset(offset: Literal, key: DataType) -> Literal:
    value = Decimal(str(offset.value))
    if key.is_integral:
        whole = int(value)
        bits = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[key.kind]
        if not -(2**bits) < whole < 2**bits:
            raise UnsupportedSqlError(f"a frame's bound {value} is not a {key}")
        return Literal(key, whole)
    if key.is_floating:
        return Literal(key, float(value))
    result = cast_literal(offset, key)
    if not isinstance(result, Literal):
        raise UnsupportedSqlError(f"a frame's bound {value} is cast to {key}")
    return result


def _amount(offset: Literal) -> Decimal:
    return Decimal(str(offset.value))


def _position(bound: FrameBound) -> Decimal:
    amount = _amount(bound.offset) if bound.offset is not None else Decimal(0)
    return amount.copy_negate() if bound.kind == "preceding" else amount


def _turned(bound: FrameBound) -> FrameBound:
    """A negative offset looks the other way."""
    offset = bound.offset
    if offset is None or _amount(offset) >= 0:
        return bound
    kind: BoundKind = "following" if bound.kind == "preceding" else "preceding"
    if isinstance(offset.value, int | float):
        return FrameBound(kind, Literal(offset.dtype, -offset.value))
    return FrameBound(kind, Literal(offset.dtype, str(offset.value).removeprefix("-")))


def _fitting(
    name: str, known: WindowFunction | None, frame: WindowFrame | None, order: tuple[SortKey, ...]
) -> WindowFrame | None:
    """The frame that the function sees."""
    if known is not None and known.frame == "none":
        if frame is not None:
            raise AnalysisError(f"'{name}' takes no frame")
        return None
    if known is not None and known.required_frame is not None:
        if frame not in (None, known.required_frame):
            raise AnalysisError(f"'{name}' has a fixed frame, which cannot be changed")
        return known.required_frame
    if frame is not None:
        return frame
    return RUNNING_RANGE if order else WHOLE_PARTITION


@builds(*ONLY_OVER)
def _without_over(node: exp.Anonymous, names: Names) -> Expression:
    del names
    raise AnalysisError(f"window function '{node.name}' needs OVER")
