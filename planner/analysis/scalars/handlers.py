"""The dispatch of scalar nodes: one small function per construct, found by the node's class.

The other modules of the package register what they build here. Each result carries all of Spark's
implicit casts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlglot import exp

from stagecoach.planner.errors import SqlError, UnsupportedSqlError
from stagecoach.planner.plan.expressions import Expression, Parameter
from stagecoach.planner.plan.logical import LogicalPlan
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.parse import StagecoachSpark, position


class Names(Protocol):
    """What a scalar needs of its surroundings."""

    def column(self, node: exp.Column) -> Expression:
        """The column or alias that the node names."""
        ...

    def find(self, parts: Sequence[str]) -> Expression | None:
        """The column or alias of that name; None if there is none."""
        ...

    def star(self, node: exp.Expr) -> list[tuple[str, Expression]]:
        """Names and values of the columns that `*` stands for."""
        ...

    def subquery(self, query: exp.Query) -> LogicalPlan:
        """The plan of a subquery, whose free columns are columns of this scope."""
        ...

    def parameter(self, name: str) -> Parameter:
        """The declared parameter of that name."""
        ...

    def function(self, name: str) -> ProjectFunction | None:
        """The function of the project of that name; None if there is none."""
        ...

    def window(self, node: exp.Window) -> Expression:
        """The value of a window function."""
        ...

    def time_window(self, name: str) -> Expression:
        """The time window of the row: `window` or `session_window`."""
        ...

    def is_time_window(self, value: Expression) -> bool:
        """Whether a value is the column of a time window."""
        ...


Handler = Callable[[Any, Names], Expression]

HANDLERS: dict[type[exp.Expr], Handler] = {}
# Functions whose arguments are not plain scalars: units, `*`, aliases, lambdas.
CALL_BUILDERS: dict[str, Callable[[exp.Anonymous, Names], Expression]] = {}


def handles(*classes: type[exp.Expr]) -> Callable[[Handler], Handler]:
    """Registers a function as the builder of nodes of these classes."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(classes, handler))
        return handler

    return register


def builds(*names: str) -> Callable[[Handler], Handler]:
    """Registers a function as the builder of calls of these Spark functions."""

    def register(handler: Handler) -> Handler:
        CALL_BUILDERS.update(dict.fromkeys(names, handler))
        return handler

    return register


def build_scalar(node: exp.Expr, names: Names) -> Expression:
    """The typed expression of an AST node.

    Raises:
        AnalysisError: For an unknown name or wrong types, with line and column.
        UnsupportedSqlError: For what the planner does not know.
    """
    handler = HANDLERS.get(type(node))
    try:
        if handler is None:
            raise UnsupportedSqlError(f"{node_name(node)} is not known to the planner")
        return handler(node, names)
    except SqlError as error:
        if error.line is None:
            line, column = position(node)
            if line is not None:
                raise error.at(line, column) from error
        raise


def node_name(node: exp.Expr) -> str:
    """What a message calls a node."""
    if isinstance(node, exp.Anonymous):
        return f"function '{node.name}'"
    if isinstance(node, exp.Func):
        return f"function '{node.sql_name().lower()}'"
    return f"'{node.sql(dialect=StagecoachSpark)}'"


_HARMLESS = frozenset({"this", "big_int", "dialect", "safe", "null_safe", "is_string", "zone"})


def refuse_unused(node: exp.Expr, keys: tuple[str, ...]) -> None:
    """Raise for a part of the node that its builder would pass over."""
    for key, value in node.args.items():
        if value and key not in keys and key not in _HARMLESS:
            raise UnsupportedSqlError(f"{node_name(node)} with {key}")
