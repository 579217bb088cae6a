"""Rule: subqueries become joins."""

from __future__ import annotations

from planner.aggregates import make_aggregate
from planner.errors import UnsupportedSqlError
from planner.expressions import (
    TRUE,
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    ScalarSubquery,
    SubqueryExpression,
    conjoin,
    conjuncts,
    contains,
    substitute,
)
from planner.functions import make_call
from planner.logical import Aggregate, Filter, Join, Limit, LogicalPlan, Project
from planner.optimizer.context import RuleContext
from planner.optimizer.decorrelate import decorrelate
from planner.optimizer.renumber import renumber
from planner.tree import transform_up, walk
from planner.types import BIGINT


def unnest_subqueries(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Replace EXISTS and IN by semi and anti joins, scalar subqueries by joins to an aggregate.

    Before:  Filter[EXISTS(Filter[r.k = l.k] <- r)] <- l
    After:   SemiJoin[r.k = l.k](l, r)
    A scalar subquery is computed once per value of its correlation and joined from the left, with
    COUNT made 0 where nothing matched; one that may have several rows carries a check. NOT IN keeps
    its NULL rules by an anti join and a look at the subquery's NULLs.
    Never: for a subquery under OR, or correlated by other than equality below an aggregate
    (`UnsupportedSqlError`: Spark runs the whole query).
    """
    return transform_up(plan, lambda node: _rewrite(node, context))


def _rewrite(node: LogicalPlan, context: RuleContext) -> LogicalPlan:
    if not any(contains(e, SubqueryExpression) for e in node.expressions):
        return node
    unnester = _Unnester(context)
    if isinstance(node, Filter):
        return unnester.filter(node)
    if isinstance(node, Project):
        child = node.child
        items = []
        for column, expr in node.items:
            child, new = unnester.scalars(child, expr)
            items.append((column, new))
        return Project(child, tuple(items))
    raise UnsupportedSqlError(f"a subquery in {type(node).__name__.upper()} is not staged yet")


class _Unnester:
    def __init__(self, context: RuleContext) -> None:
        self._context = context

    def filter(self, node: Filter) -> LogicalPlan:
        plan, rest = node.child, []
        for part in conjuncts(node.predicate):
            negated = isinstance(part, Call) and part.function == "not"
            inner = part.children[0] if negated else part
            if isinstance(inner, Exists):
                plan = self._exists(plan, inner, negated)
            elif isinstance(inner, InSubquery):
                plan = self._not_in(plan, inner) if negated else self._in(plan, inner)
            else:
                plan, part = self.scalars(plan, part)
                rest.append(part)
        if rest:
            plan = Filter(plan, conjoin(rest))
        if plan.columns != node.columns:
            plan = Project(plan, tuple((c, c.ref) for c in node.columns))
        return plan

    def _exists(self, plan: LogicalPlan, node: Exists, negated: bool) -> LogicalPlan:
        inner, correlation = decorrelate(self._unnested(node.plan), keep_rows=False)
        if not correlation:
            inner = Limit(inner, 1)
        return Join(plan, inner, "anti" if negated else "semi", conjoin(correlation))

    def _in(self, plan: LogicalPlan, node: InSubquery) -> LogicalPlan:
        inner, correlation = decorrelate(self._unnested(node.plan), keep_rows=False)
        return Join(plan, inner, "semi", conjoin([*_equalities(node), *correlation]))

    def _not_in(self, plan: LogicalPlan, node: InSubquery) -> LogicalPlan:
        """`x NOT IN (q)`: no equal row, and (q is empty, or neither x nor q holds a NULL)."""
        if node.plan.free_ids or len(node.args) != 1:
            raise UnsupportedSqlError("NOT IN over a correlated subquery or several columns")
        inner = self._unnested(node.plan)
        member = inner.columns[0]
        rows = self._context.column("rows", BIGINT)
        present = self._context.column("present", BIGINT)
        counts = Aggregate(
            inner,
            (),
            (
                (rows, make_aggregate("count", ())),
                (present, make_aggregate("count", (member.ref,))),
            ),
        )
        again = renumber(inner, self._context)
        equal = make_call("eq", node.args[0], again.columns[0].ref)
        matched = Join(plan, again, "anti", equal)
        nothing = make_call("eq", rows.ref, Literal(BIGINT, 0))
        clean = make_call(
            "and",
            make_call("is_not_null", node.args[0]),
            make_call("eq", rows.ref, present.ref),
        )
        return Filter(Join(matched, counts, "cross", TRUE), make_call("or", nothing, clean))

    def scalars(self, plan: LogicalPlan, expr: Expression) -> tuple[LogicalPlan, Expression]:
        """The expression with its scalar subqueries replaced by columns joined to `plan`."""
        found = dict.fromkeys(n for n in walk(expr) if isinstance(n, SubqueryExpression))
        values: dict[Expression, Expression] = {}
        for node in found:
            if not isinstance(node, ScalarSubquery):
                raise UnsupportedSqlError("EXISTS or IN with a subquery under OR, CASE or SELECT")
            plan, values[node] = self._scalar(plan, node)
        return plan, transform_up(expr, lambda n: values.get(n, n))

    def _scalar(self, plan: LogicalPlan, node: ScalarSubquery) -> tuple[LogicalPlan, Expression]:
        inner = self._unnested(node.plan)
        value: Expression = inner.columns[0].ref
        while isinstance(inner, Project):
            value = substitute(value, {c.id: e for c, e in inner.items})
            inner = inner.child
        if not isinstance(inner, Aggregate) or inner.groups:
            if isinstance(inner, Aggregate | Limit) and inner.free_ids:
                raise UnsupportedSqlError("a correlated scalar subquery with GROUP BY or LIMIT")
            inner, value = self._checked(inner, value)
        below, correlation = decorrelate(inner.child, keep_rows=True)
        if not correlation:
            return Join(plan, inner, "cross", TRUE), value
        groups: list[tuple[Column, Expression]] = []
        matches: list[Expression] = []
        for part in correlation:
            mine, theirs = _sides(part, below)
            column = self._context.column("key", mine.dtype)
            groups.append((column, mine))
            matches.append(make_call("eq", theirs, column.ref))
        grouped = Aggregate(below, tuple(groups), inner.aggregates)
        empty = {
            c.id: make_call("coalesce", c.ref, Literal(BIGINT, 0))
            for c, call in inner.aggregates
            if call.function == "count"
        }
        return Join(plan, grouped, "left", conjoin(matches)), substitute(value, empty)

    def _checked(self, inner: LogicalPlan, value: Expression) -> tuple[Aggregate, Expression]:
        """At most one row as an aggregate that raises for two."""
        if not value.dtype.is_atomic:
            raise UnsupportedSqlError(f"a scalar subquery of type {value.dtype}")
        only = self._context.column("value", value.dtype)
        rows = self._context.column("rows", BIGINT)
        aggregates: tuple[tuple[Column, AggregateCall], ...] = (
            (only, make_aggregate("min", (value,))),
            (rows, make_aggregate("count", ())),
        )
        return Aggregate(inner, (), aggregates), make_call("single_value", only.ref, rows.ref)

    def _unnested(self, plan: LogicalPlan) -> LogicalPlan:
        return unnest_subqueries(plan, self._context)


def _equalities(node: InSubquery) -> list[Expression]:
    pairs = zip(node.args, node.plan.columns, strict=True)
    return [make_call("eq", arg, column.ref) for arg, column in pairs]


def _sides(part: Expression, inner: LogicalPlan) -> tuple[Expression, Expression]:
    """The operands of a correlated equality: the subquery's own, the outer query's."""
    if isinstance(part, Call) and part.function == "eq":
        for mine, theirs in (part.args, part.args[::-1]):
            if mine.column_ids <= inner.column_ids and theirs.column_ids.isdisjoint(
                inner.column_ids
            ):
                return mine, theirs
    raise UnsupportedSqlError("a scalar subquery is correlated by other than equality")
