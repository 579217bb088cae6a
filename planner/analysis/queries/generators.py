"""Build `explode` and its kin in the select list, in LATERAL VIEW and as table functions.

A generator becomes a `Generate` operator. `stack` has a known number of rows, so it becomes copies
of the row instead. In a select list a generated column is a call of `generated` until the operators
below the list are built.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.analysis.queries.constants import whole_number
from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.analysis.queries.replacing import exchanged
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scalars.handlers import Names
from stagecoach.planner.analysis.scope import Relation, Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError, check_count
from stagecoach.planner.functions import make_call
from stagecoach.planner.functions.macros.members import get_field
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Lambda,
    Literal,
    WindowCall,
    contains,
    substitute,
)
from stagecoach.planner.plan.logical import Expand, Generate, LogicalPlan
from stagecoach.planner.plan.subqueries import SubqueryExpression
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk
from stagecoach.planner.types import BOOLEAN, INT, NULL, Field, struct_of

GENERATORS = frozenset(
    (
        "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer",
        "stack", "json_tuple",
    )
)  # fmt: skip
GENERATED = "generated"
_MAX_STACK = 10_000  # rows that one row may become


def is_generator(node: exp.Expr) -> bool:
    """Whether a node is a call of a generator."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS


def build_generator(node: exp.Anonymous, names: Names) -> tuple[Call, bool]:
    """The call of a generator, typed as a struct of its columns, and whether it is an outer one.

    Raises:
        AnalysisError: For arguments that it does not take.
    """
    name = node.name.lower()
    with located(node):
        args = tuple(build_scalar(a, names) for a in node.expressions)
        if name == "stack":
            return _stack(args), False
        return make_call(name.removesuffix("_outer"), *args), name.endswith("_outer")


def _stack(args: tuple[Expression, ...]) -> Call:
    """`stack(n, …)`: its items row by row, in the types of the columns."""
    check_count("function 'stack'", (2, 1 << 20), len(args))
    count = whole_number(args[0], "the number of rows of 'stack'")
    if count is None or count > _MAX_STACK:
        raise UnsupportedSqlError("'stack' with a computed or too large number of rows")
    if count < 1:
        raise AnalysisError(f"'stack' makes {count} rows; it must be at least 1")
    items = args[1:]
    width = -(-len(items) // count)
    types = []
    for number in range(width):
        found = {e.dtype for e in items[number::width] if e.dtype != NULL}
        if len(found) > 1:
            shown = " and ".join(sorted(str(t) for t in found))
            raise AnalysisError(f"column {number} of 'stack' mixes {shown}")
        types.append(found.pop() if found else NULL)
    fields = tuple(Field(f"col{i}", t) for i, t in enumerate(types))
    filled = [*items, *[Literal(NULL, None)] * (count * width - len(items))]
    typed = tuple(
        Literal(types[i % width], None) if e.dtype == NULL else e for i, e in enumerate(filled)
    )
    return Call(struct_of(fields), "stack", typed)


def generate(
    context: BuildContext, plan: LogicalPlan, generator: Call, outer: bool
) -> tuple[LogicalPlan, tuple[Column, ...]]:
    """The rows of a plan with those that a generator makes of them, and the generated columns."""
    made = tuple(context.column(f.name, f.dtype) for f in generator.dtype.fields)
    if generator.function != "stack":
        return Generate(plan, generator, made, outer), made
    width = len(made)
    own = tuple(c.ref for c in plan.columns)
    rows = [generator.args[i : i + width] for i in range(0, len(generator.args), width)]
    projections = tuple((*own, *row) for row in rows)
    return Expand(plan, projections, (*plan.columns, *made)), made


# ---------------------------------------------------------------- FROM


def lateral_view(
    context: BuildContext, plan: LogicalPlan, scope: Scope, node: exp.Lateral
) -> tuple[LogicalPlan, Relation]:
    """The rows with those of LATERAL VIEW, or of a table function behind LATERAL.

    Raises:
        UnsupportedSqlError: For what is not a generator.
    """
    call = node.this
    with located(call):
        if not isinstance(call, exp.Anonymous) or not is_generator(call):
            raise UnsupportedSqlError(f"LATERAL {call.key.upper()} is not staged")
        generator, outer = build_generator(call, scope)
        _require_plain(generator)
    plan, made = generate(context, plan, generator, outer or bool(node.args.get("outer")))
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if alias is not None else []
    with located(node):
        return plan, Relation(node.alias or "", _named(made, names, call.name))


def _require_plain(generator: Call) -> None:
    for argument in generator.args:
        if contains(argument, AggregateCall) or contains(argument, WindowCall):
            raise AnalysisError(
                "aggregate and window functions are not allowed in FROM; use a subquery"
            )


def _named(made: tuple[Column, ...], names: list[str], what: str) -> tuple[Column, ...]:
    if names and len(names) != len(made):
        raise AnalysisError(f"'{what.lower()}' makes {len(made)} columns, {len(names)} are named")
    pairs = zip(made, names or [c.name for c in made], strict=True)
    return tuple(replace(c, name=n) for c, n in pairs)


def generated_where(plan: LogicalPlan, condition: Expression) -> LogicalPlan:
    """The rows of LEFT JOIN with a generator: rows without a generated row that fits stay.

    The array is filtered before its items become rows.

    Args:
        plan: A `Generate`.
        condition: What a generated row must fulfil, over the columns of the plan.

    Raises:
        UnsupportedSqlError: For a generator or a condition that has no such form.
    """
    known = ("explode", "inline")
    if not isinstance(plan, Generate) or plan.outer or plan.generator.function not in known:
        raise UnsupportedSqlError("LEFT JOIN LATERAL of this table function on a condition")
    if contains(condition, Lambda) or contains(condition, SubqueryExpression):
        raise UnsupportedSqlError("LEFT JOIN LATERAL of a table function on such a condition")
    (items,) = plan.generator.args
    if items.dtype.kind != "array":
        raise UnsupportedSqlError("LEFT JOIN LATERAL of a map on a condition")
    item = Column(-1, "item", items.dtype.fields[0].dtype)
    values: dict[int, Expression] = {c.id: item.ref for c in plan.outputs}
    if plan.generator.function == "inline":
        pairs = zip(plan.outputs, item.dtype.fields, strict=True)
        values = {c.id: get_field(item.ref, f.name) for c, f in pairs}
    body = Lambda(BOOLEAN, (item,), substitute(condition, values))
    kept = make_call("filter", items, body)
    return replace(plan, generator=make_call(plan.generator.function, kept), outer=True)


# ---------------------------------------------------------------- the select list


def generator_items(item: exp.Expr, scope: Scope) -> list[tuple[str, Expression]] | None:
    """The select items that a generator gives; None for any other item.

    Raises:
        AnalysisError: For a wrong number of aliases.
    """
    call, names = item, []
    if isinstance(item, exp.Alias):
        call, names = item.this, [item.alias]
    elif isinstance(item, exp.Aliases):
        call, names = item.this, [a.name for a in item.expressions]
    if not isinstance(call, exp.Anonymous) or not is_generator(call):
        if isinstance(item, exp.Aliases):
            raise AnalysisError("only a generator can have several aliases")
        return None
    generator, outer = build_generator(call, scope)
    fields = generator.dtype.fields
    if names and len(names) != len(fields):
        with located(item):
            raise AnalysisError(
                f"'{call.name.lower()}' makes {len(fields)} columns, {len(names)} are named"
            )
    return [
        (name, _generated(field, generator, position, outer))
        for position, (field, name) in enumerate(
            zip(fields, names or [f.name for f in fields], strict=True)
        )
    ]


def _generated(field: Field, generator: Call, position: int, outer: bool) -> Call:
    tags = (Literal(INT, position), Literal(BOOLEAN, outer))
    return Call(field.dtype, GENERATED, (generator, *tags))


def generated_columns(expressions: Iterable[Expression]) -> list[Call]:
    """The generated columns that expressions hold, each once, in order."""
    return list(
        dict.fromkeys(
            part
            for expr in expressions
            for part in walk(expr)
            if isinstance(part, Call) and part.function == GENERATED
        )
    )


def plan_generators(
    context: BuildContext, plan: LogicalPlan, expressions: list[Expression]
) -> tuple[LogicalPlan, list[Expression]]:
    """The generators of a select list, one above the other, and its expressions over them."""
    replaced: dict[Expression, Expression] = {}
    known: dict[tuple[Expression, ...], tuple[Column, ...]] = {}
    for column in generated_columns(expressions):
        generator, position, outer = column.args
        if not isinstance(generator, Call) or not isinstance(position, Literal):
            continue
        if generated_columns([generator]):
            raise AnalysisError("generators cannot be nested; use a subquery")
        if contains(generator, WindowCall):
            raise UnsupportedSqlError("a generator over a window function")
        key = (generator, outer)
        if key not in known:
            is_outer = isinstance(outer, Literal) and bool(outer.value)
            plan, known[key] = generate(context, plan, generator, is_outer)
        replaced[column] = known[key][int(position.value or 0)].ref
    return plan, [exchanged(e, replaced) for e in expressions]
