"""Turn scalar subqueries, EXISTS and IN into columns that are joined to the outer rows.

The outer rows stay as they are; the expression that held the subqueries now reads the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stagecoach.planner.aggregates import make_aggregate
from stagecoach.planner.errors import UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.optimizer.context import RuleContext
from stagecoach.planner.optimizer.proofs import is_unique
from stagecoach.planner.optimizer.renumber import renumber
from stagecoach.planner.optimizer.unnesting.domain import Domain
from stagecoach.planner.optimizer.unnesting.negations import push_negations
from stagecoach.planner.optimizer.unnesting.one_row import crossed, hoist, one_row, put_beside
from stagecoach.planner.optimizer.unnesting.push_down import push_down
from stagecoach.planner.optimizer.unnesting.pushed import Pushed
from stagecoach.planner.plan.expressions import (
    FALSE,
    TRUE,
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    conjoin,
    conjuncts,
    contains,
)
from stagecoach.planner.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Limit,
    LogicalPlan,
    Project,
    Sort,
    Union,
    distinct,
)
from stagecoach.planner.plan.subqueries import (
    Exists,
    InSubquery,
    ScalarSubquery,
    SubqueryExpression,
)
from stagecoach.planner.types import BIGINT, BOOLEAN

_NULL = Literal(BOOLEAN, None)


@dataclass
class Values:
    """Puts the values of subqueries beside the rows of a plan.

    Args:
        plan: The outer plan; each subquery adds to it.
        context: Makes column numbers.
        unnested: Rewrites the subqueries inside a subquery's plan.
    """

    plan: LogicalPlan
    context: RuleContext
    unnested: Callable[[LogicalPlan], LogicalPlan]

    def __post_init__(self) -> None:
        self._known: dict[tuple[Expression, bool], Expression] = {}

    def expression(self, expr: Expression) -> Expression:
        """The expression with its subqueries replaced by columns of the plan."""
        if not contains(expr, SubqueryExpression):
            return expr
        return self._replaced(push_negations(expr))

    def _replaced(self, expr: Expression) -> Expression:
        if isinstance(expr, Call) and expr.function == "not":
            (arg,) = expr.args
            if isinstance(arg, InSubquery):
                return self._value(arg, negated=True)
        if isinstance(expr, SubqueryExpression):
            return self._value(expr)
        return expr.with_children(tuple(self._replaced(c) for c in expr.children))

    def _value(self, node: SubqueryExpression, *, negated: bool = False) -> Expression:
        if (node, negated) not in self._known:
            self._known[node, negated] = self._made(node, negated)
        return self._known[node, negated]

    def _made(self, node: Expression, negated: bool) -> Expression:
        match node:
            case ScalarSubquery():
                return self.scalar(self.unnested(node.plan))
            case Exists():
                return self.exists(self.unnested(node.plan))
            case InSubquery():
                args = tuple(self._replaced(a) for a in node.args)
                return self.membership(args, self.unnested(node.plan), negated=negated)
        raise UnsupportedSqlError(f"{type(node).__name__} cannot be staged")

    # ------------------------------------------------------------ scalar subqueries

    def scalar(self, inner: LogicalPlan) -> Expression:
        """The value of a subquery of one column; two rows for one outer row are an error."""
        only = inner.columns[0]
        if (chain := one_row(inner)) is not None:
            beside = put_beside(self.plan, chain, self.context)
            self.plan = beside.plan
            value = beside.values[only.id]
            if beside.keep == TRUE:
                return value
            return make_call("case", beside.keep, value, Literal(value.dtype, None))
        if inner.free_ids.isdisjoint(self.plan.column_ids):
            return self._uncorrelated(inner, only)
        pushed, domain = self._pushed(inner)
        keys = tuple((c, c.ref) for c in pushed.bound.values())
        right: LogicalPlan
        if pushed.at_most_one or is_unique(pushed.plan, pushed.ids):
            right, value = Project(pushed.plan, _unique_items((*keys, (only, only.ref)))), only.ref
        else:
            right, value = self._checked(pushed.plan, keys, only.ref)
        self.plan = Join(self.plan, right, "left", conjoin(pushed.matches(domain)))
        return value

    def _uncorrelated(self, inner: LogicalPlan, only: Column) -> Expression:
        if is_unique(inner, frozenset()):
            self.plan = Join(self.plan, inner, "left", TRUE)
            return only.ref
        right, value = self._checked(inner, (), only.ref)
        self.plan = crossed(self.plan, right)
        return value

    def _checked(
        self, inner: LogicalPlan, keys: tuple[tuple[Column, Expression], ...], value: Expression
    ) -> tuple[LogicalPlan, Expression]:
        """The only row of each group, by an aggregate whose reader raises for two."""
        name = "min" if value.dtype.is_atomic and not value.dtype.is_floating else "any_value"
        only = self.context.column("value", value.dtype)
        rows = self.context.column("rows", BIGINT)
        aggregates: tuple[tuple[Column, AggregateCall], ...] = (
            (only, make_aggregate(name, (value,))),
            (rows, make_aggregate("count", ())),
        )
        return Aggregate(inner, keys, aggregates), make_call("single_value", only.ref, rows.ref)

    # ------------------------------------------------------------ EXISTS

    def exists(self, inner: LogicalPlan) -> Expression:
        """Whether the subquery has a row for the outer row."""
        inner = bare(inner)
        if isinstance(inner, Limit) and inner.limit == 0:
            return FALSE
        chain = one_row(inner)
        if chain is not None:
            if chain.keep == TRUE:
                return TRUE
            beside = put_beside(self.plan, chain, self.context)
            self.plan = beside.plan
            return make_call("coalesce", beside.keep, FALSE)
        if isinstance(inner, Union) and inner.free_ids:
            return make_call("or", *(self.exists(child) for child in inner.inputs))
        if inner.free_ids.isdisjoint(self.plan.column_ids):
            rows = self.context.column("rows", BIGINT)
            first = inner if inner.free_ids else Limit(inner, 1)
            counted = Aggregate(first, (), ((rows, make_aggregate("count", ())),))
            self.plan = crossed(self.plan, counted)
            return make_call("gt", rows.ref, Literal(BIGINT, 0))
        pushed, domain = self._pushed(inner)
        keys = distinct(Project(pushed.plan, tuple((c, c.ref) for c in pushed.bound.values())))
        marker = self.context.column("exists", BOOLEAN)
        right = Project(keys, (*((c, c.ref) for c in keys.columns), (marker, TRUE)))
        self.plan = Join(self.plan, right, "left", conjoin(pushed.matches(domain)))
        return make_call("is_not_null", marker.ref)

    # ------------------------------------------------------------ IN

    def membership(
        self, args: tuple[Expression, ...], inner: LogicalPlan, *, negated: bool
    ) -> Expression:
        """Whether the operands equal a row of the subquery; negated, that they equal none.

        Never NULL (see `negations`), but for the constant NULL as the operand.
        """
        if len(args) == 1 and isinstance(args[0], Literal) and args[0].value is None:
            answer = Literal(BOOLEAN, negated)
            return make_call("case", self.exists(inner), _NULL, answer)
        if (chain := one_row(inner)) is not None:
            beside = put_beside(self.plan, chain, self.context)
            self.plan = beside.plan
            members = [beside.values[c.id] for c in inner.columns]
            parts = compatible(args, members) if negated else equalities(args, members)
            found = make_call("coalesce", conjoin([*conjuncts(beside.keep), *parts]), FALSE)
            return make_call("not", found) if negated else found
        if negated and len(args) > 1:
            possible = compatible(args, [c.ref for c in inner.columns])
            return make_call("not", self.exists(Filter(inner, conjoin(possible))))
        again = renumber(inner, self.context) if negated else inner
        equal = equalities(args, [c.ref for c in again.columns])
        matched = self.exists(Filter(again, conjoin(equal)))
        if not negated:
            return matched
        return make_call("and", make_call("not", matched), self.known(args[0], inner))

    def known(self, arg: Expression, inner: LogicalPlan) -> Expression:
        """That no NULL keeps us from knowing that the operand equals no row of the subquery."""
        rows, present = self.counts(inner)
        nothing = make_call("eq", rows, Literal(BIGINT, 0))
        clean = make_call("and", make_call("is_not_null", arg), make_call("eq", rows, present))
        return make_call("or", nothing, clean)

    def counts(self, inner: LogicalPlan) -> tuple[Expression, Expression]:
        """How many rows the subquery has, and in how many its first column is not NULL."""
        rows = self.context.column("rows", BIGINT)
        present = self.context.column("present", BIGINT)
        member = inner.columns[0].ref
        calls = ((rows, make_aggregate("count", ())), (present, make_aggregate("count", (member,))))
        chain = one_row(Aggregate(inner, (), calls))
        assert chain is not None
        beside = put_beside(self.plan, chain, self.context)
        self.plan = beside.plan
        return beside.values[rows.id], beside.values[present.id]

    def _pushed(self, inner: LogicalPlan) -> tuple[Pushed, Domain]:
        self.plan, inner = hoist(self.plan, inner, self.context)
        domain = Domain(self.plan, inner.free_ids & self.plan.column_ids, self.context)
        return push_down(inner, domain, self.context), domain


def bare(inner: LogicalPlan) -> LogicalPlan:
    """A plan that has rows where the subquery has some, without what changes nothing about that."""
    while True:
        match inner:
            case Sort() | Project():
                inner = inner.child
            case Limit() if not inner.offset and inner.limit != 0:
                inner = inner.child
            case Aggregate() if inner.groups:
                inner = inner.child
            case _:
                return inner


def equalities(args: Sequence[Expression], members: Sequence[Expression]) -> list[Expression]:
    """That the operands of IN equal a row of the subquery."""
    return [make_call("eq", arg, member) for arg, member in zip(args, members, strict=True)]


def compatible(args: Sequence[Expression], members: Sequence[Expression]) -> list[Expression]:
    """That the operands of IN equal a row of the subquery as far as NULLs let us know."""
    return [
        make_call(
            "or",
            make_call("eq", arg, member),
            make_call("is_null", arg),
            make_call("is_null", member),
        )
        for arg, member in zip(args, members, strict=True)
    ]


def _unique_items(
    items: tuple[tuple[Column, Expression], ...],
) -> tuple[tuple[Column, Expression], ...]:
    return tuple({c.id: (c, e) for c, e in items}.values())
