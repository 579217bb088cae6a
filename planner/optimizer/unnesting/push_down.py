"""Push D down through a subquery's plan until no operator refers to the outer query.

The result gives, for each value of D, the rows that the subquery gives for it, beside columns that
hold the value. It may also give rows for values that are not in D. D itself is joined only where no
equality binds its columns to columns of the subquery; otherwise those columns stand for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.convert_outer_joins import null_rejected
from stagecoach.planner.optimizer.unnesting.domain import Domain, require_comparable
from stagecoach.planner.optimizer.unnesting.empty_groups import restored
from stagecoach.planner.optimizer.unnesting.pull_up import pull_up
from stagecoach.planner.optimizer.unnesting.pushed import Pushed, equality
from stagecoach.planner.plan.expressions import (
    TRUE,
    Call,
    Column,
    ColumnRef,
    Expression,
    Literal,
    SortKey,
    WindowCall,
    conjoin,
    conjuncts,
    substitute,
    substitute_operands,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    LogicalPlan,
    NamedExpression,
    OneRow,
    Project,
    Sort,
    Union,
    Window,
)
from stagecoach.planner.types import INT

_NONE: frozenset[int] = frozenset()


def push_down(
    plan: LogicalPlan, domain: Domain, context: RuleContext, wanted: frozenset[int] = _NONE
) -> Pushed:
    """The plan of a subquery with the values of D beside its rows.

    Args:
        plan: The subquery's plan, in which no subquery is left.
        domain: D.
        context: Makes column numbers.
        wanted: Outer columns to give beside those that the plan reads.

    Raises:
        UnsupportedSqlError: Where D cannot be made (see `Domain.copy`).
    """
    return _PushDown(domain, context).push(plan, wanted | (plan.free_ids & domain.ids))


class _PushDown:
    def __init__(self, domain: Domain, context: RuleContext) -> None:
        self._domain = domain
        self._context = context

    def used(self, plan: LogicalPlan) -> frozenset[int]:
        """The outer columns that a plan reads."""
        return plan.free_ids & self._domain.ids

    def read(self, *exprs: Expression) -> frozenset[int]:
        """The outer columns that expressions read."""
        return _NONE.union(*(e.column_ids for e in exprs)) & self._domain.ids

    def push(self, plan: LogicalPlan, wanted: frozenset[int]) -> Pushed:
        """The plan beside the values of the wanted outer columns, which it need not read."""
        if not self.used(plan):
            return self._beside(plan, wanted)
        if isinstance(plan, Filter | Join):
            pulled = pull_up(plan, keep_rows=True)
            if pulled is not None:
                bare, parts = pulled
                return self._filter(Filter(bare, conjoin(parts)), wanted)
        match plan:
            case Filter():
                return self._filter(self._sunk(plan), wanted)
            case Project():
                return self._project(plan, wanted)
            case Aggregate():
                return self._groups(plan, wanted) if plan.groups else self._total(plan, wanted)
            case Sort():
                return self.push(plan.child, wanted)  # nothing in a subquery depends on it
            case Limit():
                return self._limit(plan, wanted)
            case Join():
                return self._join(plan, wanted)
            case Union():
                return self._union(plan, wanted)
            case Window():
                return self._window(plan, wanted)
            case Generate():
                below = self.push(plan.child, wanted)
                return replace(below, plan=_over(plan, below), at_most_one=False)
            case Expand():
                return self._expand(plan, wanted)
        raise UnsupportedSqlError(
            f"{type(plan).__name__.upper()} refers to columns of an outer query"
        )

    # ------------------------------------------------------------ where D enters

    def _beside(self, plan: LogicalPlan, wanted: frozenset[int]) -> Pushed:
        if not wanted:
            return Pushed(plan, {})
        values, bound = self._domain.copy(wanted)
        if isinstance(plan, OneRow):
            return Pushed(values, bound)
        return Pushed(Join(plan, values, "cross", TRUE), bound)

    def _filter(self, plan: Filter, wanted: frozenset[int]) -> Pushed:
        below_ids = self.used(plan.child)
        missing = wanted - below_ids
        found = self._bindings(plan, missing)
        if not missing or not missing <= found.keys():
            below = self.push(plan.child, wanted)
            return _filtered(below, list(conjuncts(plan.predicate)))
        below = self.push(plan.child, below_ids)
        rest = [p for p in conjuncts(plan.predicate) if all(p is not f[0] for f in found.values())]
        return _filtered(self._bind(below, found), rest)

    def _sunk(self, plan: Filter) -> Filter:
        """Conjuncts over one side of a join move there, where they may bind what it needs."""
        join = plan.child
        if not isinstance(join, Join) or join.kind in ("right", "full"):
            return plan
        sides: tuple[list[Expression], ...] = ([], [])
        rest: list[Expression] = []
        for part in conjuncts(plan.predicate):
            own = part.column_ids - self._domain.ids
            if own and own <= join.left.column_ids:
                sides[0].append(part)
            elif own and own <= join.right.column_ids and join.kind in ("inner", "cross"):
                sides[1].append(part)
            else:
                rest.append(part)
        children = tuple(
            Filter(side, conjoin(parts)) if parts else side
            for side, parts in zip(join.children, sides, strict=True)
        )
        return Filter(join.with_children(children), conjoin(rest))

    def _bindings(
        self, plan: Filter, missing: frozenset[int]
    ) -> dict[int, tuple[Expression, Expression]]:
        """For outer columns the conjunct that sets them equal to a value, and it."""
        found: dict[int, tuple[Expression, Expression]] = {}
        for part in conjuncts(plan.predicate):
            if not (isinstance(part, Call) and part.function in ("eq", "eq_null_safe")):
                continue
            for theirs, mine in (part.args, part.args[::-1]):
                if (
                    isinstance(theirs, ColumnRef)
                    and theirs.id in missing - found.keys()
                    and mine.column_ids <= plan.child.column_ids
                    and mine.dtype == theirs.dtype
                ):
                    found[theirs.id] = (part, mine)
                    break
        return found

    def _bind(self, below: Pushed, found: Mapping[int, tuple[Expression, Expression]]) -> Pushed:
        bound = dict(below.bound)
        items: list[NamedExpression] = [(c, c.ref) for c in below.plan.columns]
        present: list[Expression] = []
        strict = set(below.strict)
        for column in self._domain.columns(frozenset(found)):
            require_comparable(column)
            part, value = found[column.id]
            own = self._context.column(column.name, column.dtype)
            items.append((own, value))
            bound[column.id] = own
            if isinstance(part, Call) and part.function == "eq":
                present.append(make_call("is_not_null", value))
                strict.add(column.id)
        plan = Filter(below.plan, conjoin(present)) if present else below.plan
        return Pushed(Project(plan, tuple(items)), bound, frozenset(strict))

    # ------------------------------------------------------------ operators of one input

    def _project(self, plan: Project, wanted: frozenset[int]) -> Pushed:
        below = self.push(plan.child, wanted)
        items = tuple((c, substitute(e, below.refs)) for c, e in plan.items)
        have = {c.id for c, _ in items}
        more = tuple((c, c.ref) for c in below.bound.values() if c.id not in have)
        return replace(below, plan=Project(below.plan, (*items, *more)))

    def _groups(self, plan: Aggregate, wanted: frozenset[int]) -> Pushed:
        below = self.push(plan.child, wanted)
        groups = [(c, substitute(e, below.refs)) for c, e in plan.groups]
        named = {e.id: c for c, e in groups if isinstance(e, ColumnRef)}
        bound: dict[int, Column] = {}
        for old, column in below.bound.items():
            if column.id not in named:
                groups.append((column, column.ref))
                named[column.id] = column
            bound[old] = named[column.id]
        grouped = replace(_aggregates(plan, below), child=below.plan, groups=tuple(groups))
        return Pushed(grouped, bound, below.strict)

    def _total(self, plan: Aggregate, wanted: frozenset[int]) -> Pushed:
        """One row for each value of D, also for one without rows: D on the left of a join."""
        below = self.push(plan.child, self.used(plan))
        fresh = tuple((self._context.column(c.name, c.dtype), e) for c, e in plan.aggregates)
        grouped = Aggregate(
            below.plan,
            tuple((c, c.ref) for c in below.bound.values()),
            _aggregates(replace(plan, aggregates=fresh), below).aggregates,
        )
        values, bound = self._domain.copy(wanted)
        matches: list[Expression] = [
            make_call(equality(old in below.strict), bound[old].ref, column.ref)
            for old, column in below.bound.items()
        ]
        joined = Join(values, grouped, "left", conjoin(matches))
        items: list[NamedExpression] = [(c, c.ref) for c in bound.values()]
        items += [
            (old, restored(new, call))
            for (old, _), (new, call) in zip(plan.aggregates, fresh, strict=True)
        ]
        return Pushed(Project(joined, tuple(items)), bound)

    def _limit(self, plan: Limit, wanted: frozenset[int]) -> Pushed:
        """The first rows of each value, by their number in the order."""
        child = plan.child
        keys = child.keys if isinstance(child, Sort) else ()
        child = child.child if isinstance(child, Sort) else child
        below = self.push(child, wanted)
        if plan.limit is None and not plan.offset:
            return below
        partition = tuple(c.ref for c in below.bound.values())
        order = tuple(replace(k, expr=substitute(k.expr, below.refs)) for k in keys)
        order = order or tuple(SortKey(p) for p in partition[:1])
        number = self._context.column("row_number", INT)
        call = WindowCall(INT, "row_number", (), partition, order)
        window = Window(below.plan, ((number, call),))
        bounds: list[Expression] = []
        if plan.offset:
            bounds.append(make_call("gt", number.ref, _whole(plan.offset)))
        if plan.limit is not None:
            bounds.append(make_call("le", number.ref, _whole(plan.offset + plan.limit)))
        return replace(below, plan=Filter(window, conjoin(bounds)), at_most_one=plan.limit == 1)

    def _window(self, plan: Window, wanted: frozenset[int]) -> Pushed:
        below = self.push(plan.child, wanted)
        more = tuple(c.ref for c in below.bound.values())
        calls = []
        for column, call in plan.calls:
            new = substitute(call, below.refs)
            assert isinstance(new, WindowCall)
            calls.append((column, replace(new, partition=(*new.partition, *more))))
        return replace(below, plan=replace(plan, child=below.plan, calls=tuple(calls)))

    def _expand(self, plan: Expand, wanted: frozenset[int]) -> Pushed:
        below = self.push(plan.child, wanted)
        bound = self._fresh(below)
        new = _over(plan, below)
        assert isinstance(new, Expand)
        more = tuple(below.bound[old].ref for old in bound)
        projections = tuple((*row, *more) for row in new.projections)
        expand = replace(new, projections=projections, outputs=(*plan.outputs, *bound.values()))
        return Pushed(expand, bound, below.strict)

    def _fresh(self, pushed: Pushed) -> dict[int, Column]:
        return {
            old: self._context.column(c.name, c.dtype) for old, c in sorted(pushed.bound.items())
        }

    # ------------------------------------------------------------ operators of several inputs

    def _union(self, plan: Union, wanted: frozenset[int]) -> Pushed:
        parts = [self.push(child, wanted) for child in plan.inputs]
        outputs = self._fresh(parts[0])
        inputs = []
        for child, part in zip(plan.inputs, parts, strict=True):
            items = [(c, c.ref) for c in child.columns]
            own = self._fresh(part)
            items += [(own[old], part.bound[old].ref) for old in outputs]
            inputs.append(Project(part.plan, tuple(items)))
        union = Union(tuple(inputs), (*plan.outputs, *outputs.values()))
        strict = frozenset.intersection(*(p.strict for p in parts))
        return Pushed(union, outputs, strict)

    def _join(self, plan: Join, wanted: frozenset[int]) -> Pushed:
        if plan.kind == "right":
            plan = Join(plan.right, plan.left, "left", plan.condition)
        if plan.kind in ("inner", "cross"):
            return self._inner(plan, wanted)
        if plan.kind == "full":
            return self._full(plan, wanted)
        left = self.push(plan.left, wanted)
        right_plan, parts = plan.right, list(conjuncts(plan.condition))
        pulled = pull_up(plan.right, keep_rows=plan.kind == "left")
        if pulled is not None:
            right_plan, parts = pulled[0], [*parts, *pulled[1]]
        right = self.push(right_plan, self.used(right_plan))
        on = [substitute(p, left.refs) for p in parts] + _equal(left, right)
        joined = Join(left.plan, right.plan, plan.kind, conjoin(on))
        return Pushed(joined, left.bound, left.strict)

    def _inner(self, plan: Join, wanted: frozenset[int]) -> Pushed:
        correlated = [p for p in conjuncts(plan.condition) if self.read(p)]
        if correlated:
            kept = [p for p in conjuncts(plan.condition) if not self.read(p)]
            bare = replace(plan, kind="inner" if kept else "cross", condition=conjoin(kept))
            return self._filter(Filter(bare, conjoin(correlated)), wanted)
        left_ids, right_ids = self.used(plan.left), self.used(plan.right)
        missing = wanted - left_ids - right_ids
        if left_ids:
            left_ids |= missing
        else:
            right_ids |= missing
        left, right = self.push(plan.left, left_ids), self.push(plan.right, right_ids)
        on = [*conjuncts(plan.condition), *_equal(left, right)]
        joined = Join(left.plan, right.plan, "inner" if on else "cross", conjoin(on))
        # An inner join on `<=>` of a column that is never NULL leaves its partner without NULLs.
        bound = {**right.bound, **left.bound}
        return Pushed(joined, bound, left.strict | right.strict)

    def _full(self, plan: Join, wanted: frozenset[int]) -> Pushed:
        left, right = self.push(plan.left, wanted), self.push(plan.right, wanted)
        on = substitute(plan.condition, left.refs)
        joined = Join(
            left.plan, right.plan, "full", conjoin([*conjuncts(on), *_equal(left, right)])
        )
        bound = self._fresh(left)
        items: list[NamedExpression] = [(c, c.ref) for c in plan.columns]
        for old, column in bound.items():
            either = make_call("coalesce", left.bound[old].ref, right.bound[old].ref)
            items.append((column, either))
        return Pushed(Project(joined, tuple(items)), bound)


def _equal(left: Pushed, right: Pushed) -> list[Expression]:
    """That the values of D on both sides are the same ones."""
    return [
        make_call(
            equality(old in left.strict or old in right.strict), left.bound[old].ref, column.ref
        )
        for old, column in right.bound.items()
        if old in left.bound
    ]


def _filtered(below: Pushed, parts: list[Expression]) -> Pushed:
    parts = [substitute(p, below.refs) for p in parts]
    if not parts:
        return below
    rejected = set().union(*(null_rejected(p) for p in parts))
    strict = {old for old, column in below.bound.items() if column.id in rejected}
    filtered = Filter(below.plan, conjoin(parts))
    return replace(below, plan=filtered, strict=below.strict | strict)


def _over(plan: LogicalPlan, below: Pushed) -> LogicalPlan:
    """An operator of one input over what that became."""
    new = plan.with_children((below.plan,))
    return new.with_expressions(tuple(substitute(e, below.refs) for e in plan.expressions))


def _aggregates(plan: Aggregate, below: Pushed) -> Aggregate:
    return replace(
        plan,
        aggregates=tuple((c, substitute_operands(e, below.refs)) for c, e in plan.aggregates),
    )


def _whole(value: int) -> Expression:
    return Literal(INT, value)
