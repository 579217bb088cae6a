"""Rule: turn subqueries and lateral joins into plain joins."""

from __future__ import annotations

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.renumber import renumber
from stagecoach.planner.optimizer.unnesting.domain import Domain
from stagecoach.planner.optimizer.unnesting.lateral import is_lateral, unnest_lateral
from stagecoach.planner.optimizer.unnesting.negations import push_negations
from stagecoach.planner.optimizer.unnesting.one_row import hoist, one_row
from stagecoach.planner.optimizer.unnesting.pull_up import pull_up
from stagecoach.planner.optimizer.unnesting.push_down import push_down
from stagecoach.planner.optimizer.unnesting.values import Values, bare, compatible, equalities
from stagecoach.planner.plan.expressions import (
    FALSE,
    Call,
    Expression,
    conjoin,
    conjuncts,
    contains,
)
from stagecoach.planner.plan.logical import (
    Filter,
    Join,
    JoinKind,
    Limit,
    LogicalPlan,
    Project,
    Union,
)
from stagecoach.planner.plan.rewriting import filtered, with_columns
from stagecoach.planner.plan.subqueries import Exists, InSubquery, SubqueryExpression
from stagecoach.planner.tree import transform_up


def unnest_subqueries(plan: LogicalPlan, context: RuleContext) -> LogicalPlan:
    """Replace EXISTS and IN by semi and anti joins, all other subqueries by joined columns.

    Before:  Filter[EXISTS(Filter[r.k = l.k] <- r)] <- l
    After:   SemiJoin[r.k = l.k](l, r)
    A scalar subquery is computed once per value of its correlation and joined from the left, with
    COUNT made 0 where nothing matched; one that may have several rows carries a check. EXISTS and
    IN that are not conjuncts of a filter become a marker joined from the left. NOT IN keeps its
    NULL rules by an anti join and a look at the subquery's NULLs. What cannot be done by pulling
    conjuncts up is done by pushing the distinct outer values down (see `unnesting`).
    Never: for a subquery in the condition of an outer join that reads both of its sides, or one
    whose outer rows would have to be computed twice but are not the same twice
    (`UnsupportedSqlError`: Spark runs the whole query).
    """
    return transform_up(plan, lambda node: _rewrite(node, context))


def _rewrite(node: LogicalPlan, context: RuleContext) -> LogicalPlan:
    if any(contains(e, SubqueryExpression) for e in node.expressions):
        return _Unnester(context).rewrite(node)
    if isinstance(node, Join) and is_lateral(node):
        return unnest_lateral(node, context)
    return node


class _Unnester:
    def __init__(self, context: RuleContext) -> None:
        self._context = context

    def rewrite(self, node: LogicalPlan) -> LogicalPlan:
        """The operator without subqueries in its expressions."""
        match node:
            case Filter():
                new = self.filter(node)
            case Join():
                new = self.join(node)
            case _ if len(node.children) == 1:
                values = self._values(node.children[0])
                exprs = tuple(values.expression(e) for e in node.expressions)
                new = node.with_children((values.plan,)).with_expressions(exprs)
            case _:
                raise UnsupportedSqlError(f"a subquery in {type(node).__name__.upper()}")
        return with_columns(new, node.columns)

    def _values(self, plan: LogicalPlan) -> Values:
        return Values(plan, self._context, self._unnested)

    def _unnested(self, plan: LogicalPlan) -> LogicalPlan:
        return unnest_subqueries(plan, self._context)

    # ------------------------------------------------------------ filters

    def filter(self, node: Filter) -> LogicalPlan:
        """The rows for which all conjuncts are true."""
        plan, rest = node.child, list[Expression]()
        for part in conjuncts(push_negations(node.predicate)):
            negated = isinstance(part, Call) and part.function == "not"
            inner = part.children[0] if negated else part
            if isinstance(inner, Exists):
                plan, more = self._exists(plan, self._unnested(inner.plan), negated)
            elif isinstance(inner, InSubquery) and not _nested(inner):
                plan, more = (self._not_in if negated else self._in)(plan, inner)
            else:
                values = self._values(plan)
                more = [values.expression(part)]
                plan = values.plan
            rest += more
        return filtered(plan, rest)

    def _exists(
        self, plan: LogicalPlan, inner: LogicalPlan, negated: bool
    ) -> tuple[LogicalPlan, list[Expression]]:
        small = bare(inner)
        if one_row(small) is not None or _never(small) or isinstance(small, Union):
            values = self._values(plan)
            found = values.exists(inner)
            return values.plan, [make_call("not", found) if negated else _condition(found)]
        kind: JoinKind = "anti" if negated else "semi"
        pulled = pull_up(inner, keep_rows=False) or pull_up(small, keep_rows=False)
        if pulled is None:
            return self._pushed(plan, small, kind, []), []
        below, correlation = pulled
        if not correlation:
            below = Limit(below, 1)
        return Join(plan, below, kind, conjoin(correlation)), []

    def _in(self, plan: LogicalPlan, node: InSubquery) -> tuple[LogicalPlan, list[Expression]]:
        inner = self._unnested(node.plan)
        if one_row(inner) is not None and inner.free_ids & plan.column_ids:
            values = self._values(plan)
            found = values.membership(node.args, inner, negated=False)
            return values.plan, [found]
        members = [c.ref for c in inner.columns]
        return self._members(plan, inner, equalities(node.args, members), "semi"), []

    def _not_in(self, plan: LogicalPlan, node: InSubquery) -> tuple[LogicalPlan, list[Expression]]:
        """`x NOT IN (q)`: no equal row, and (q is empty, or neither x nor q holds a NULL)."""
        inner = self._unnested(node.plan)
        members = [c.ref for c in inner.columns]
        if len(node.args) > 1:
            return self._members(plan, inner, compatible(node.args, members), "anti"), []
        again = renumber(inner, self._context)
        equal = equalities(node.args, [c.ref for c in again.columns])
        values = self._values(self._members(plan, again, equal, "anti"))
        known = values.known(node.args[0], inner)
        return values.plan, [known]

    def _members(
        self, plan: LogicalPlan, inner: LogicalPlan, on: list[Expression], kind: JoinKind
    ) -> LogicalPlan:
        """A semi or anti join with the rows of a subquery, whose columns `on` reads."""
        pulled = pull_up(inner, keep_rows=False)
        if pulled is not None:
            return Join(plan, pulled[0], kind, conjoin([*on, *pulled[1]]))
        base, found = _below_projects(inner, on)
        pulled = pull_up(base, keep_rows=False)
        if pulled is not None:
            return Join(plan, pulled[0], kind, conjoin([*found, *pulled[1]]))
        return self._pushed(plan, inner, kind, on)

    def _pushed(
        self, plan: LogicalPlan, inner: LogicalPlan, kind: JoinKind, on: list[Expression]
    ) -> LogicalPlan:
        plan, inner = hoist(plan, inner, self._context)
        domain = Domain(plan, inner.free_ids & plan.column_ids, self._context)
        pushed = push_down(inner, domain, self._context)
        return Join(plan, pushed.plan, kind, conjoin([*on, *pushed.matches(domain)]))

    # ------------------------------------------------------------ join conditions

    def join(self, node: Join) -> LogicalPlan:
        """A join whose condition holds subqueries; each is computed on the side that it reads."""
        if is_lateral(node):
            raise UnsupportedSqlError("a subquery in the condition of a LATERAL join")
        parts = {"left": list[Expression](), "right": [], "above": [], "on": []}
        for part in conjuncts(node.condition):
            parts[_place(part, node)].append(part)
        left = self._restricted(node.left, parts["left"])
        right = self._restricted(node.right, parts["right"])
        sides = {"left": self._values(left), "right": self._values(right)}
        on = [self._in_sides(p, node, sides) for p in parts["on"]]
        kind = node.kind
        if kind in ("inner", "cross"):
            kind = "inner" if on else "cross"
        joined = Join(sides["left"].plan, sides["right"].plan, kind, conjoin(on))
        return self._restricted(joined, parts["above"])

    def _restricted(self, plan: LogicalPlan, parts: list[Expression]) -> LogicalPlan:
        return self.filter(Filter(plan, conjoin(parts))) if parts else plan

    def _in_sides(self, part: Expression, node: Join, sides: dict[str, Values]) -> Expression:
        """A conjunct of an outer join with its subqueries computed on either side."""

        def visit(expr: Expression) -> Expression:
            if not isinstance(expr, SubqueryExpression):
                return expr
            ids = expr.column_ids
            if ids.isdisjoint(node.left.column_ids):
                return sides["right"].expression(expr)
            if ids.isdisjoint(node.right.column_ids):
                return sides["left"].expression(expr)
            raise UnsupportedSqlError(
                f"a subquery in the condition of a {node.kind.upper()} JOIN reads both sides"
            )

        return transform_up(part, visit)


def _place(part: Expression, node: Join) -> str:
    """Where a conjunct of a join condition is to be computed."""
    if not contains(part, SubqueryExpression):
        return "on"
    ids = part.column_ids
    reads_left = not ids.isdisjoint(node.left.column_ids)
    reads_right = not ids.isdisjoint(node.right.column_ids)
    if node.kind in ("inner", "cross", "left", "semi", "anti") and reads_right and not reads_left:
        return "right"
    if node.kind in ("inner", "cross", "right", "semi") and reads_left and not reads_right:
        return "left"
    return "above" if node.kind in ("inner", "cross") else "on"


def _condition(found: Expression) -> Expression:
    """An answer in a filter, where NULL need not be made FALSE."""
    if isinstance(found, Call) and found.function == "coalesce" and found.args[1:] == (FALSE,):
        return found.args[0]
    return found


def _nested(node: InSubquery) -> bool:
    return any(contains(a, SubqueryExpression) for a in node.args)


def _never(inner: LogicalPlan) -> bool:
    return isinstance(inner, Limit) and inner.limit == 0


def _below_projects(
    inner: LogicalPlan, on: list[Expression]
) -> tuple[LogicalPlan, list[Expression]]:
    """The plan below the projections of a subquery, and conditions over its columns."""
    from stagecoach.planner.plan.expressions import substitute

    while isinstance(inner, Project):
        mapping = {c.id: e for c, e in inner.items}
        on = [substitute(p, mapping) for p in on]
        inner = inner.child
    return inner, on
