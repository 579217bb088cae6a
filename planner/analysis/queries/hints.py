"""Build the operators for hints about the number of tasks.

`REPARTITION(n)`, `REPARTITION(n, columns)`, `REPARTITION(columns)` and `COALESCE(n)` set how many
tasks produce the rows, and so how many files a published table has. A hint never changes a row.
It is ignored in a subquery expression, and when it has neither a number nor columns. `REBALANCE`
asks for what task sizes give anyway. `REPARTITION_BY_RANGE` with a number is treated as
`REPARTITION`: equal rows stay together, neighbours do not.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from stagecoach.planner.analysis.scalars import build_scalar
from stagecoach.planner.analysis.scope import Scope
from stagecoach.planner.errors import AnalysisError, InvalidHintError, SqlError
from stagecoach.planner.plan.expressions import Expression
from stagecoach.planner.plan.logical import LogicalPlan, Repartition
from stagecoach.planner.plan.operators import NamedExpression
from stagecoach.planner.syntax.hints import BY_COLUMNS, JOINS
from stagecoach.planner.syntax.places import located

log = logging.getLogger(__name__)

MAX_TASKS = 1 << 16
"""Most partitions that a shuffle can have."""


@dataclass(frozen=True)
class TaskHint:
    """What a hint asks for.

    Args:
        count: Tasks; None leaves it to the sizes.
        keys: Positions of the selected columns by which rows are hashed.
        at_most: Whether fewer will do.
    """

    count: int | None
    keys: tuple[int, ...] = ()
    at_most: bool = False


def task_hints(
    node: exp.Select, scope: Scope, outputs: Sequence[tuple[str, Expression]]
) -> tuple[TaskHint, ...]:
    """What the hints of a SELECT ask for, the outermost first.

    Args:
        node: The SELECT.
        scope: What columns that are not selected are looked up in.
        outputs: Names and values of the selected columns.

    Raises:
        AnalysisError: For parameters that Spark refuses.
    """
    hint = node.args.get("hint")
    found: list[TaskHint] = []
    for item in hint.expressions if isinstance(hint, exp.Hint) else ():
        name = item.name.upper()
        if name not in (*BY_COLUMNS, "COALESCE"):
            if name not in JOINS:
                log.warning("unrecognized hint: %s", item.sql("spark"))
            continue
        try:
            asked = _task_hint(name, item.expressions, scope, outputs)
        except SqlError as error:  # places in a hint are counted from its own beginning
            with located(node):
                raise InvalidHintError(error.message, condition=error.condition) from error
        if asked is not None and scope.parent is None:
            found.append(asked)
    return tuple(found)


def repartitioned(
    plan: LogicalPlan, hints: Sequence[TaskHint], outputs: Sequence[NamedExpression]
) -> LogicalPlan:
    """The rows of a SELECT from as many tasks as its hints ask for."""
    for hint in reversed(hints):
        if isinstance(plan, Repartition) and not hint.at_most:
            plan = plan.child  # how the rows were divided before is of no interest any more
        keys = tuple(outputs[position][0].ref for position in hint.keys)
        if hint.count is not None or keys:
            plan = Repartition(plan, hint.count, keys, hint.at_most)
    return plan


def _task_hint(
    name: str,
    parameters: Sequence[exp.Expr],
    scope: Scope,
    outputs: Sequence[tuple[str, Expression]],
) -> TaskHint | None:
    number = parameters[0] if parameters and _is_number(parameters[0]) else None
    columns = parameters if number is None else parameters[1:]
    if name == "COALESCE" and (number is None or columns):
        raise AnalysisError("hint COALESCE takes one number of tasks")
    for column in columns:
        if not isinstance(column, exp.Column):
            raise AnalysisError(
                f"hint {name} takes a number of tasks and columns, not {column.sql('spark')}"
            )
    count = None if number is None else _number(number)
    if count is not None and not 0 < count <= MAX_TASKS:
        raise AnalysisError(f"hint {name} asks for {count} tasks; use 1 to {MAX_TASKS:,}")
    places = [_position(column, scope, outputs) for column in columns]
    if name == "REBALANCE":
        if None in places:
            missing = columns[places.index(None)].sql("spark")
            raise AnalysisError(f"hint REBALANCE names {missing}, which is not selected")
        return None
    # What is not selected is not there to hash by, and what has members cannot be hashed.
    keys = tuple(p for p in places if p is not None and outputs[p][1].dtype.is_atomic)
    return TaskHint(count, keys if len(keys) == len(places) else (), name == "COALESCE")


def _is_number(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Neg) else node
    return isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdigit()


def _number(node: exp.Expr) -> int:
    return -int(node.this.name) if isinstance(node, exp.Neg) else int(node.name)


def _position(
    node: exp.Expr, scope: Scope, outputs: Sequence[tuple[str, Expression]]
) -> int | None:
    """Which selected column it is; None for a column of FROM that is not selected."""
    if isinstance(node, exp.Column) and not node.table:
        for position, (name, _) in enumerate(outputs):
            if name.lower() == node.name.lower():
                return position
    value = build_scalar(node, scope)
    return next((i for i, (_, expr) in enumerate(outputs) if expr == value), None)
