"""Build SELECT, from the rows of FROM to the select list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from stagecoach.planner.aggregates import is_aggregate
from stagecoach.planner.analysis.names import item_name
from stagecoach.planner.analysis.queries.conditions import condition_of
from stagecoach.planner.analysis.queries.context import BuildContext, Ctes
from stagecoach.planner.analysis.queries.generators import (
    generated_columns,
    generator_items,
    plan_generators,
)
from stagecoach.planner.analysis.queries.grouping import calling, outer_aggregates, plan_aggregate
from stagecoach.planner.analysis.queries.grouping_sets import refuse_grouping
from stagecoach.planner.analysis.queries.hints import TaskHint, repartitioned, task_hints
from stagecoach.planner.analysis.queries.output_names import (
    Item,
    distinct_keys,
    late_scope,
    refuse_outer_parts,
    sources_of,
)
from stagecoach.planner.analysis.queries.relations import plan_from
from stagecoach.planner.analysis.queries.replacing import exchanged
from stagecoach.planner.analysis.queries.sorting import limited, sort_keys
from stagecoach.planner.analysis.queries.stars import is_star, star_items
from stagecoach.planner.analysis.queries.time_windows import plan_time_windows
from stagecoach.planner.analysis.queries.windows import (
    check_place,
    misplaced,
    plan_windows,
    qualify_condition,
)
from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scalars.times import WORDS_OF_FUNCTIONS
from stagecoach.planner.analysis.scalars.windows import named_windows
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    WindowCall,
    contains,
)
from stagecoach.planner.plan.logical import (
    Filter,
    LogicalPlan,
    NamedExpression,
    Project,
    Sort,
    distinct,
)
from stagecoach.planner.syntax.places import located
from stagecoach.planner.tree import walk

_SELECT_PARTS = frozenset(
    (
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "with_",
        "hint",
        "kind",
        "windows",
        "qualify",
        "sort",
        "distribute",
        "cluster",
        "laterals",
    )
)


def plan_select(
    context: BuildContext, node: exp.Select, outer: Scope | None, ctes: Ctes
) -> LogicalPlan:
    """The plan of a SELECT."""
    for part, value in node.args.items():
        if value and part not in _SELECT_PARTS:
            with located(value if isinstance(value, exp.Expr) else None):
                raise UnsupportedSqlError(f"{part.strip('_').upper()} is not staged yet")
    plan, scope = plan_from(context, node, outer, ctes)
    return select_from(context, node, plan, scope)


def select_from(
    context: BuildContext, node: exp.Select, plan: LogicalPlan, scope: Scope
) -> LogicalPlan:
    """The plan of a SELECT over given rows, without its FROM."""
    if (where := node.args.get("where")) is not None:
        predicate = condition_of(where.this, scope, "WHERE")
        if outer_aggregates(predicate, plan) or any(
            isinstance(part, AggregateCall) and not part.column_ids - plan.column_ids
            for part in walk(predicate)
        ):
            with located(where.this):
                raise AnalysisError("aggregates are not allowed in WHERE; use HAVING")
        plan = Filter(plan, predicate)
    plan = plan_time_windows(context, plan, node, scope)
    scope.windows = named_windows(node)
    shown = _items(node, scope)
    scope.windows = None
    items = [(item.name, item.expr) for item in shown]
    having, keys = _having_and_keys(node, scope, shown)
    if scope.parent is not None:
        refuse_outer_parts(node, plan, shown, keys)
    if any(contains(e, WindowCall) for e in having):
        raise misplaced(node.args["having"], "in HAVING; use QUALIFY or a subquery")
    qualify = qualify_condition(node, scope, items)
    hints = task_hints(node, scope, items)
    group = node.args.get("group")
    expressions = [*(e for _, e in items), *having, *(k.expr for k in keys), *qualify]
    if group is not None or having or any(contains(e, AggregateCall) for e in expressions):
        plan, rewritten = plan_aggregate(context, plan, node, scope, items, expressions)
        items = [(n, e) for (n, _), e in zip(items, rewritten, strict=False)]
        having = rewritten[len(items) : len(items) + len(having)]
        sort_exprs = rewritten[len(items) + len(having) :]
        keys = [replace(k, expr=e) for k, e in zip(keys, sort_exprs, strict=False)]
        qualify = rewritten[len(rewritten) - len(qualify) :]
    else:
        place = calling(node, ("grouping", "grouping_id"))
        for expr in expressions:
            with located(place):
                refuse_grouping(expr, None)
    for predicate in having:
        plan = Filter(plan, predicate)
    if any(contains(e, WindowCall) for e in expressions):
        over = [*(e for _, e in items), *(k.expr for k in keys), *qualify]
        plan, over = plan_windows(context, plan, over)
        items = [(n, e) for (n, _), e in zip(items, over, strict=False)]
        keys = [replace(k, expr=e) for k, e in zip(keys, over[len(items) :], strict=False)]
        qualify = over[len(over) - len(qualify) :]
    for predicate in qualify:
        plan = Filter(plan, predicate)
    if generated_columns(expressions):
        if any(contains(e, WindowCall) for e in expressions) or generated_columns(having):
            raise UnsupportedSqlError("a generator beside window functions or in HAVING")
        over = [*(e for _, e in items), *(k.expr for k in keys)]
        plan, over = plan_generators(context, plan, over)
        items = [(n, e) for (n, _), e in zip(items, over, strict=False)]
        keys = [replace(k, expr=e) for k, e in zip(keys, over[len(items) :], strict=True)]
    sources = sources_of(shown, context.sources)
    return _finish_select(context, node, plan, items, keys, sources, hints)


def _items(node: exp.Select, scope: Scope) -> list[Item]:
    _refuse_trailing_comma(node)
    items: list[Item] = []
    given: set[str] = set()
    for item in node.expressions:
        if is_star(item):
            items.extend(Item(n, e, is_plain=True) for n, e in star_items(item, scope))
            continue
        with located(item):
            generated = generator_items(item, scope)
        if generated is not None:
            items.extend(Item(n, e) for n, e in generated)
            if isinstance(item, exp.Alias | exp.Aliases):
                scope.aliases = {**{n.lower(): e for n, e in generated}, **scope.aliases}
            continue
        _refuse_aliases_in_aggregates(item, scope, given)
        expr = build_scalar(item, scope)
        check_place(expr, item)
        name = item_name(item)
        is_column = isinstance(item, exp.Column)
        if isinstance(item, WORDS_OF_FUNCTIONS) and (word := item.sql_name().lower()):
            is_column = scope.find([word]) is not None
            name = word if is_column else name
        items.append(Item(name, expr, is_column))
        if isinstance(item, exp.Alias):
            key = name.lower()
            scope.aliases.setdefault(key, expr)
            if key in given:  # then later items can read neither
                scope.shared_names = frozenset((*scope.shared_names, key))
            given.add(key)
    scope.shared_names = frozenset()  # GROUP BY takes the first
    return items


def _refuse_aliases_in_aggregates(item: exp.Expr, scope: Scope, given: set[str]) -> None:
    """Refuse an aggregate of an earlier item by its alias.

    Raises:
        AnalysisError: Naming the alias.
    """
    if not given:
        return
    columns = replace(scope, aliases={})
    for call in item.find_all(exp.Anonymous):
        if not is_aggregate(call.name) or isinstance(call.parent, exp.Window):
            continue
        for node in call.find_all(exp.Column):
            if node.table or node.name.lower() not in given or columns.find([node.name]):
                continue
            if node.find_ancestor(exp.Query, exp.Lambda) is item.find_ancestor(exp.Query):
                with located(node):
                    raise AnalysisError(
                        f"the aggregate '{call.name.lower()}' reads the select item '{node.name}'",
                        condition="UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_AGGREGATE_FUNC",
                    )


def _refuse_trailing_comma(node: exp.Select) -> None:
    """Refuse `SELECT a, FROM t`, in which FROM is the name of a column.

    Raises:
        AnalysisError: Naming the comma.
    """
    if node.args.get("from_") or len(node.expressions) < 2:
        return
    last = node.expressions[-1]
    column = last.this if isinstance(last, exp.Alias) else last
    word = column.this if isinstance(column, exp.Column) else None
    if isinstance(word, exp.Identifier) and not word.quoted and word.name.upper() == "FROM":
        with located(column):
            raise AnalysisError(
                "the select list ends with a comma", condition="TRAILING_COMMA_IN_SELECT"
            )


def _having_and_keys(
    node: exp.Select, scope: Scope, items: list[Item]
) -> tuple[list[Expression], list[SortKey]]:
    late = late_scope(scope, items)
    having: list[Expression] = []
    if (clause := node.args.get("having")) is not None:
        having = [condition_of(clause.this, late, "HAVING")]
    values = [item.expr for item in items]
    if node.args.get("distinct") is None:
        return having, sort_keys(node, late, values)
    return having, distinct_keys(node, late, items, lambda names: sort_keys(node, names, values))


def _finish_select(
    context: BuildContext,
    node: exp.Select,
    plan: LogicalPlan,
    items: list[tuple[str, Expression]],
    keys: list[SortKey],
    sources: dict[int, int],
    hints: Sequence[TaskHint],
) -> LogicalPlan:
    outputs: list[NamedExpression] = [(context.column(n, e.dtype), e) for n, e in items]
    context.sources.update({outputs[at][0].id: source for at, source in sources.items()})
    windows = context.time_windows
    windows |= {
        c.id
        for c, e in outputs
        if e in context.sessions or (isinstance(e, ColumnRef) and e.id in windows)
    }
    by_expr = {e: c for c, e in reversed(outputs)}
    is_distinct = node.args.get("distinct") is not None
    shown = {e: c.ref for c, e in reversed(outputs)}
    hidden: list[NamedExpression] = []
    resolved: list[SortKey] = []
    for key in keys:
        column = by_expr.get(key.expr)
        if column is None and not isinstance(key.expr, Literal):
            column = context.column("sort_key", key.expr.dtype)
            hidden.append((column, exchanged(key.expr, shown) if is_distinct else key.expr))
            by_expr[key.expr] = column
        if column is not None:
            resolved.append(replace(key, expr=column.ref))
    if is_distinct:
        _check_distinct(node, outputs)
        plan = distinct(Project(plan, tuple(outputs)))
        if hidden:
            plan = Project(plan, (*((c, c.ref) for c, _ in outputs), *hidden))
    else:
        plan = Project(plan, (*outputs, *hidden))
    plan = repartitioned(plan, hints, outputs)
    if resolved:
        plan = Sort(plan, tuple(resolved))
    plan = limited(node, plan, context.scope((), None, {}))
    if hidden:
        plan = Project(plan, tuple((c, c.ref) for c, _ in outputs))
    return plan


def _check_distinct(node: exp.Select, outputs: list[NamedExpression]) -> None:
    if node.args["distinct"].args.get("on"):
        with located(node.args["distinct"]):
            raise UnsupportedSqlError("DISTINCT ON")
    for column, _ in outputs:
        if "map<" in str(column.dtype):
            with located(node):
                raise AnalysisError(
                    f"DISTINCT cannot compare column '{column.name}', which holds a map"
                )
