"""Resolve names of the select list in HAVING, ORDER BY and the enclosing query.

An item without an alias is the column itself; an alias is always a new column. A nested query may
show one column twice, and then both names are the same column. Source: Spark's
`ResolveReferencesInSort`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from stagecoach.planner.aggregates import AGGREGATE_ALIASES, AGGREGATES
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError
from stagecoach.planner.plan.expressions import AggregateCall, ColumnRef, Expression, SortKey
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk

_NOT_SELECTED = "ORDER BY of a DISTINCT query must use its select items"


@dataclass(frozen=True)
class Item:
    """An item of a select list.

    Args:
        name: Name of its column.
        expr: Its value.
        is_plain: Whether it is a column as it is, without an alias.
    """

    name: str
    expr: Expression
    is_plain: bool = False


def late_scope(scope: Scope, items: list[Item]) -> Scope:
    """The names that HAVING and ORDER BY see: the select items before the columns of FROM.

    A name that several items have means none of them.
    """
    found: dict[str, set[object]] = {}
    outputs: dict[str, Expression] = {}
    for position, item in enumerate(items):
        key = item.name.lower()
        outputs.setdefault(key, item.expr)
        found.setdefault(key, set()).add(_identity(item, scope.sources, position))
    shared = frozenset(key for key, columns in found.items() if len(columns) > 1)
    named = {key: expr for key, expr in outputs.items() if key not in shared}
    return replace(scope, aliases={**scope.made, **named}, aliases_first=True, shared_names=shared)


def _identity(item: Item, sources: Mapping[int, int], position: int) -> object:
    """What two items have in common that show one column."""
    if not item.is_plain or not isinstance(item.expr, ColumnRef):
        return ("item", position)
    return sources.get(item.expr.id, item.expr.id)


def sources_of(items: list[Item], sources: Mapping[int, int]) -> dict[int, int]:
    """By position of an item that is a plain column: the number of the column that it is."""
    return {
        position: sources.get(item.expr.id, item.expr.id)
        for position, item in enumerate(items)
        if item.is_plain and isinstance(item.expr, ColumnRef)
    }


def distinct_keys(
    node: exp.Select, late: Scope, items: list[Item], build: Callable[[Scope], list[SortKey]]
) -> list[SortKey]:
    """The sort keys of a DISTINCT query, which reads its own columns only.

    Args:
        node: The query.
        late: The scope of its ORDER BY, were it not DISTINCT.
        items: Its select list.
        build: Makes the keys, with the names of a scope.

    Raises:
        AnalysisError: For a key over other columns.
    """
    for call in _computed(node):
        with located(call):
            raise AnalysisError(_NOT_SELECTED)
    plain = {i.expr.id for i in items if i.is_plain and isinstance(i.expr, ColumnRef)}
    relations = tuple(
        replace(r, columns=tuple(c for c in r.columns if c.id in plain)) for r in late.relations
    )
    try:
        return build(replace(late, relations=relations, merged={}, made={}))
    except AnalysisError as error:
        build(late)  # what is wrong in any query is told first
        raise AnalysisError(_NOT_SELECTED, line=error.line, column=error.column) from error


def _computed(node: exp.Select) -> list[exp.Expr]:
    """Aggregates and window functions in ORDER BY, those of subqueries apart."""
    order = node.args.get("order")
    if order is None:
        return []
    calls = order.find_all(exp.Anonymous, exp.Window)
    return [c for c in calls if c.parent_select is node and _is_computed(c)]


def _is_computed(call: exp.Expr) -> bool:
    name = call.name.lower()
    return isinstance(call, exp.Window) or AGGREGATE_ALIASES.get(name, name) in AGGREGATES


def refuse_outer_parts(
    node: exp.Select, plan: LogicalPlan, items: list[Item], keys: list[SortKey]
) -> None:
    """Refuse what Spark refuses of a nested query: aggregates and sort keys of the outer query.

    Raises:
        AnalysisError: Placed at the select item or the sort key.
    """
    for item in items:
        for part in walk(item.expr):
            if isinstance(part, AggregateCall) and part.column_ids and _is_outer(part, plan):
                with located(_calling(node, part.function)):
                    raise AnalysisError(
                        f"'{part.function}' cannot aggregate columns of the outer query; "
                        "compute it there"
                    )
    shown = {item.expr for item in items}
    for position, key in enumerate(keys):
        if key.expr not in shown and key.expr.column_ids - plan.column_ids:
            order = node.args.get("order")
            found = order.expressions if order is not None else []
            with located(found[position] if position < len(found) else order):
                raise AnalysisError(
                    "ORDER BY of a nested query cannot read columns of the outer query"
                )


def _is_outer(part: Expression, plan: LogicalPlan) -> bool:
    return not part.column_ids & plan.column_ids


def _calling(node: exp.Select, function: str) -> exp.Expr:
    """Where the select list calls an aggregate."""
    calls = (c for item in node.expressions for c in item.find_all(exp.Anonymous))
    names = ((c, c.name.lower()) for c in calls)
    return next((c for c, n in names if AGGREGATE_ALIASES.get(n, n) == function), node)
