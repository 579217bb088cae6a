"""Build GROUPING SETS, ROLLUP and CUBE.

Each set groups its own copy of the rows, with NULL in the keys that it leaves out. Source of the
rules: Spark's `ResolveGroupingAnalytics`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from stagecoach.planner.analysis.queries.context import BuildContext
from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import make_call
from stagecoach.planner.plan.expressions import Call, Expression, Literal
from stagecoach.planner.plan.logical import Expand, LogicalPlan, NamedExpression
from stagecoach.planner.types import BIGINT, INT, TINYINT

KeyOf = Callable[[exp.Expr], Expression]
Set = tuple[Expression, ...]

_MAX_SETS = 4096  # a cube of twelve keys
_ANALYTICS = exp.Rollup | exp.Cube | exp.GroupingSets
_GROUPING = ("grouping", "grouping_id")


@dataclass(frozen=True)
class GroupingSets:
    """All keys in the order in which they are written, and the sets of them to group by."""

    keys: tuple[Expression, ...]
    sets: tuple[frozenset[Expression], ...]

    def number(self, chosen: frozenset[Expression]) -> int:
        """`grouping_id()` of a set: a bit for each key, set where it is not grouped by."""
        bits = ("0" if key in chosen else "1" for key in self.keys)
        return int("".join(bits) or "0", 2)


def grouping_sets(group: exp.Group, key_of: KeyOf) -> GroupingSets | None:
    """The sets of a GROUP BY clause; None if it is a plain list of keys.

    Args:
        group: The clause.
        key_of: Builds a key: an expression, an alias or a position.

    Raises:
        UnsupportedSqlError: For far more sets than anyone writes.
    """
    legacy = [n for part in ("rollup", "cube", "grouping_sets") for n in group.args.get(part) or []]
    if legacy:
        return _legacy(group, legacy, key_of)
    if not any(isinstance(item, _ANALYTICS) for item in group.expressions):
        return None
    factors: list[list[Set]] = [
        _sets(item, key_of) if isinstance(item, _ANALYTICS) else [(key_of(item),)]
        for item in group.expressions
    ]
    return _crossed(factors)


def _legacy(group: exp.Group, nodes: list[exp.Expr], key_of: KeyOf) -> GroupingSets:
    """`GROUP BY a, b WITH ROLLUP` and `GROUP BY a, b GROUPING SETS (…)`."""
    if len(nodes) != 1:
        raise UnsupportedSqlError("several of WITH ROLLUP, WITH CUBE and GROUPING SETS")
    (node,) = nodes
    keys = [key_of(item) for item in group.expressions]
    if node.expressions and not isinstance(node, exp.GroupingSets):
        plain: list[list[Set]] = [[(k,)] for k in keys]
        return _crossed([*plain, _sets(node, key_of)])
    if isinstance(node, exp.GroupingSets):
        found = _crossed([_sets(node, key_of)])
        everything = tuple(dict.fromkeys((*keys, *found.keys)))
        return GroupingSets(everything, found.sets)
    single: list[Set] = [(k,) for k in keys]
    return _crossed([_rolled(single) if isinstance(node, exp.Rollup) else _cubed(single)])


def _crossed(factors: list[list[Set]]) -> GroupingSets:
    count = 1
    for factor in factors:
        count *= len(factor)
    if count > _MAX_SETS:
        raise UnsupportedSqlError(f"{count} grouping sets")
    sets = [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*factors)]
    keys = dict.fromkeys(k for factor in factors for chosen in factor for k in chosen)
    return GroupingSets(tuple(keys), tuple(frozenset(s) for s in sets))


def _sets(node: exp.Expr, key_of: KeyOf) -> list[Set]:
    if isinstance(node, exp.GroupingSets):
        found: list[Set] = []
        for item in node.expressions:
            if isinstance(item, _ANALYTICS):
                found.extend(_sets(item, key_of))
            else:
                found.append(_composite(item, key_of))
        return found
    parts = [_composite(item, key_of) for item in node.expressions]
    return _rolled(parts) if isinstance(node, exp.Rollup) else _cubed(parts)


def _composite(node: exp.Expr, key_of: KeyOf) -> Set:
    inner = node.unnest()
    if isinstance(inner, exp.Tuple):
        return tuple(key_of(item) for item in inner.expressions)
    return (key_of(node),)


def _rolled(parts: list[Set]) -> list[Set]:
    lengths = range(len(parts), -1, -1)
    return [tuple(itertools.chain(*parts[:length])) for length in lengths]


def _cubed(parts: list[Set]) -> list[Set]:
    if 2 ** len(parts) > _MAX_SETS:
        raise UnsupportedSqlError(f"a CUBE of {len(parts)} keys")
    choices = itertools.product(*([part, ()] for part in parts))
    return [tuple(itertools.chain(*chosen)) for chosen in choices]


def expand_sets(
    context: BuildContext, plan: LogicalPlan, sets: GroupingSets
) -> tuple[LogicalPlan, tuple[NamedExpression, ...], dict[Expression, Expression]]:
    """The rows once per set, with NULL for the keys that a set does not group by.

    The rows keep their own columns too, because aggregates see them as they are.

    Returns:
        The copies, the groups of the aggregate over them, and what stands for the keys,
        `grouping(…)` and `grouping_id(…)` above it.
    """
    if not sets.keys and len(sets.sets) == 1:  # one row, even for no input
        return plan, (), _functions(sets, Literal(BIGINT, 0))
    numbers = [sets.number(chosen) for chosen in sets.sets]
    made = [context.column(getattr(k, "name", "group"), k.dtype) for k in sets.keys]
    made.append(context.column("grouping_id", BIGINT))
    if len(set(numbers)) < len(numbers):  # a set that is written twice gives its groups twice
        made.append(context.column("set_number", INT))
    projections = []
    for position, (chosen, number) in enumerate(zip(sets.sets, numbers, strict=True)):
        keys = [k if k in chosen else Literal(k.dtype, None) for k in sets.keys]
        tags = [Literal(BIGINT, number), Literal(INT, position)]
        row = [*(c.ref for c in plan.columns), *keys, *tags]
        projections.append(tuple(row[: len(plan.columns) + len(made)]))
    expanded = Expand(plan, tuple(projections), (*plan.columns, *made))
    groups = tuple((context.column(c.name, c.dtype), c.ref) for c in made)
    columns = [column for column, _ in groups]
    replaced: dict[Expression, Expression] = {
        key: column.ref for key, column in zip(sets.keys, columns, strict=False)
    }
    replaced |= _functions(sets, columns[len(sets.keys)].ref)
    return expanded, groups, replaced


def _functions(sets: GroupingSets, number: Expression) -> dict[Expression, Expression]:
    """What `grouping(key)` and `grouping_id(…)` are, from the number of a set."""
    found: dict[Expression, Expression] = {
        grouping_call("grouping_id", ()): number,
        grouping_call("grouping_id", sets.keys): number,
    }
    for key in sets.keys:
        without = dict.fromkeys(sets.number(s) for s in sets.sets if key not in s)
        zero, one = Literal(TINYINT, 0), Literal(TINYINT, 1)
        value: Expression = zero
        if without:
            listed = (Literal(BIGINT, n) for n in without)
            value = make_call("case", make_call("in", number, *listed), one, zero)
        found[grouping_call("grouping", (key,))] = value
    return found


def grouping_call(name: str, args: tuple[Expression, ...]) -> Call:
    """`grouping` or `grouping_id` as it is written, before the aggregate gives it a value."""
    return Call(TINYINT if name == "grouping" else BIGINT, name, args)


def refuse_grouping(expr: Expression, sets: GroupingSets | None) -> None:
    """Raise for a call of `grouping` or `grouping_id` that no set gives a value.

    Raises:
        AnalysisError: Naming the function.
    """
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function in _GROUPING:
            if sets is None:
                raise AnalysisError(f"{node.function}() needs GROUPING SETS, ROLLUP or CUBE")
            raise AnalysisError(f"the argument of {node.function}() must be a grouping column")
        stack.extend(node.children)
