"""An engine's SQL: what it writes differently from other engines.

`stagecoach.planner.render` writes a fragment and asks the dialect of its engine at each of these
points. The defaults are standard SQL; a dialect overrides what its engine writes in another way.
Columns are `c<number>`, and every text of a value may be used as an operand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal

from stagecoach.planner.errors import InternalPlanError
from stagecoach.planner.plan.expressions import (
    AggregateCall,
    Call,
    Expression,
    Literal,
    Parameter,
    ProjectCall,
    WindowCall,
)
from stagecoach.planner.plan.operators import JoinKind
from stagecoach.planner.plan.physical import GenerateExec
from stagecoach.planner.types import DataType

Scalar = Callable[[Expression], str]
"""Writes an expression."""
Alias = Callable[[], str]
"""Makes a new name for a relation."""


class Dialect(ABC):
    """How an engine writes SQL."""

    # ------------------------------------------------------------ types and constants

    @abstractmethod
    def type_name(self, dtype: DataType) -> str:
        """The engine's name of a type.

        Raises:
            UnsupportedSqlError: It has none.
        """

    def text(self, value: str) -> str:
        """A text literal.

        Raises:
            UnsupportedSqlError: The engine's SQL cannot hold the text.
        """
        return "'" + value.replace("'", "''") + "'"

    def literal(self, node: Literal) -> str:
        """A constant, with its type."""
        kind, value = node.dtype.kind, node.value
        name = self.type_name(node.dtype)
        if value is None:
            return f"CAST(NULL AS {name})"
        if kind == "boolean":
            return "true" if value else "false"
        if kind == "string":
            return self.text(str(value))
        if kind == "decimal":
            # Without an exponent: DuckDB cannot read '1e-37' as a DECIMAL(37,37).
            return f"CAST('{Decimal(str(value)):f}' AS {name})"
        if kind == "date":
            return f"DATE '{value}'"
        if kind == "timestamp":
            return f"CAST('{value}+00:00' AS {name})"
        if kind in ("tinyint", "smallint", "int", "bigint"):
            # The smallest BIGINT has no positive counterpart to negate, so it is read from text.
            return (
                f"CAST('{value}' AS {name})"
                if isinstance(value, int) and value < 0
                else f"CAST({value} AS {name})"
            )
        return f"CAST('{value}' AS {name})"

    def parameter(self, node: Parameter, value: Literal) -> str:
        """A parameter whose value is known."""
        del node
        return self.literal(value)

    # ------------------------------------------------------------ expressions

    def conditions(self, predicate: Expression, scalar: Scalar) -> Sequence[str]:
        """Return the terms of a WHERE clause, joined by AND, that keep the rows of a predicate."""
        return (scalar(predicate),)

    def cast(self, text: str, source: DataType, target: DataType, *, safe: bool) -> str:
        """A cast; a safe one gives NULL where it fails."""
        del source
        return f"{'TRY_CAST' if safe else 'CAST'}({text} AS {self.type_name(target)})"

    @abstractmethod
    def function(self, node: Call) -> str:
        """The template of a call; see `stagecoach.planner.functions.function`."""

    def project_function(self, node: ProjectCall, scalar: Scalar) -> str:
        """A call of a function of the project, by the name under which the engine knows it."""
        del scalar
        raise InternalPlanError(f"{type(self).__name__} calls no '{node.function.name}'")

    def lambda_function(self, names: Sequence[str], body: str) -> str:
        """A function of these parameters."""
        raise InternalPlanError(f"{type(self).__name__} writes no lambda of {', '.join(names)}")

    keeps_parts = False
    """Whether a part of a fragment is computed once if it is written once, in a WITH clause."""

    binds = False
    """Whether `bound` can be written."""

    aggregates_by_range = False
    """Whether an aggregate is faster in ranges of a key that the files are sorted by."""

    def bound(self, name: str, value: str, body: str) -> str:
        """The body, in which a name stands for a value that is computed once."""
        raise InternalPlanError(f"{type(self).__name__} does not bind {name} to {value} in {body}")

    def must_bind(self, template: str, text: str) -> bool:
        """Whether a spelling takes an argument only by a name, and not written inside it."""
        del template, text
        return False

    @abstractmethod
    def aggregate(self, node: AggregateCall, scalar: Scalar) -> str:
        """An aggregate call, cast to its type."""

    # ------------------------------------------------------------ operators

    null_safe_equal = "IS NOT DISTINCT FROM"
    """Compares two values of which NULL equals NULL."""

    def join(self, kind: JoinKind) -> str:
        """The words between the sides of a join."""
        return f"{kind.upper()} JOIN"

    def group_key(self, text: str, dtype: DataType) -> str:
        """A key of GROUP BY, so that equal values group and show as they do in Spark."""
        del dtype
        return text

    def sort_key(self, text: str, dtype: DataType) -> str:
        """A key of ORDER BY, so that values sort as they do in Spark."""
        del dtype
        return text

    def values(self, rows: str, alias: str, columns: str) -> str:
        """Written rows as an item of FROM.

        Args:
            rows: The rows, each in parentheses.
            alias: A name for the relation.
            columns: Names of its columns.
        """
        return f"(VALUES {rows}) AS {alias}({columns})"

    def numbers(self, bounds: str, column: str) -> str:
        """A SELECT of the whole numbers from start to below stop.

        Args:
            bounds: Start, stop and step.
            column: Name of the result's column.
        """
        raise InternalPlanError(f"{type(self).__name__} writes no range({bounds}) as {column}")

    def generate(self, node: GenerateExec, child: str, scalar: Scalar, alias: Alias) -> str:
        """Each row of the child with each row that the generator makes of it, as a FROM item."""
        del child, scalar, alias
        raise InternalPlanError(f"{type(self).__name__} writes no '{node.generator.function}'")

    # ------------------------------------------------------------ windows

    def window_call(self, call: WindowCall, scalar: Scalar, over: str) -> str:
        """A window call, whose window is the text `over`."""
        del scalar, over
        raise InternalPlanError(f"{type(self).__name__} writes no window of '{call.function}'")

    def partition_key(self, text: str, dtype: DataType) -> str:
        """A key of PARTITION BY."""
        del dtype
        return text

    def range_key(self, text: str, key: DataType, offset: DataType) -> str:
        """The sort key of a RANGE that is bounded by distances from its value."""
        del key, offset
        return text

    def distance(self, offset: Literal, key: DataType | None) -> str:
        """The bound of a frame: a number of rows, or a distance from the sort key's value."""
        del key
        return self.literal(offset)
