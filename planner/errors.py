"""Errors of Stagecoach: one root class, one class per phase.

Each error says whether a retry can help. Its message is one line that names the object and says
what to do.
"""

from __future__ import annotations

import copy
from typing import Self


class StagecoachError(Exception):
    """Root of every error that Stagecoach raises on purpose."""

    retryable: bool = False
    examined: bool = False
    """Whether `stagecoach doctor` looks at what causes it."""


class PlacedError(StagecoachError):
    """What is wrong at a place in the SQL.

    Args:
        message: What is wrong, without the place.
        line: 1-based line in the SQL text, if known.
        column: 1-based column in that line, if known.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        self.message = message
        self.line = line
        self.column = column
        super().__init__(_with_place(message, line, column))

    def at(self, line: int, column: int | None) -> Self:
        """The same error at a place."""
        placed = copy.copy(self)
        placed.line, placed.column = line, column
        placed.args = (_with_place(self.message, line, column),)
        return placed

    def with_note(self, note: str) -> Self:
        """The same error with more to its message."""
        noted = copy.copy(self)
        noted.message = f"{self.message} ({note})"
        noted.args = (_with_place(noted.message, self.line, self.column),)
        return noted


def _with_place(message: str, line: int | None, column: int | None) -> str:
    return message if line is None else f"{message} (line {line}, column {column})"


class SqlError(PlacedError):
    """A mistake in the user's SQL; the command line exits with 2.

    Attributes:
        condition: Name of Spark's error condition, where Spark is known to raise one; else empty.
            The message begins with it, as Spark's own messages do.

    Args:
        message: What is wrong, without the place.
        condition: The condition, if it is not that of the class.
        line: 1-based line in the SQL text, if known.
        column: 1-based column in that line, if known.
    """

    condition: str = ""

    def __init__(
        self,
        message: str,
        *,
        condition: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        if condition:
            self.condition = condition
        name = f"[{self.condition}] " if self.condition else ""
        super().__init__(f"{name}{message.removeprefix(name)}", line=line, column=column)


class ParseError(SqlError):
    """The text is not a statement that the parser knows."""


class ForbiddenSqlError(SqlError):
    """The statement would do something other than read the tables of the catalog."""


class AnalysisError(SqlError):
    """A name, a type or a parameter in the statement does not fit the catalog.

    The planner may be wrong about it, because it does not know all of Spark's SQL; see
    `stagecoach.planner.arbiter`.
    """


class UnknownTableError(AnalysisError):
    """A name in FROM that neither the catalog nor the statement has."""

    condition = "TABLE_OR_VIEW_NOT_FOUND"


class UnknownFunctionError(AnalysisError):
    """A call of a function that Spark does not have."""

    condition = "UNRESOLVED_ROUTINE"


class FunctionCallError(AnalysisError):
    """A call of a function of the project does not match its declaration."""


class InvalidHintError(AnalysisError):
    """A hint of how rows are divided has arguments that Spark refuses."""


class UnknownColumnError(AnalysisError):
    """A name that the planner cannot resolve.

    Args:
        name: The name, or the first part of it that cannot be resolved.
    """

    condition = "UNRESOLVED_COLUMN.WITH_SUGGESTION"

    def __init__(
        self,
        message: str,
        *,
        name: str = "",
        condition: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, condition=condition, line=line, column=column)
        self.name = name


class UnsupportedSqlError(SqlError):
    """Valid Spark SQL that the planner cannot stage; the query becomes one Spark stage."""


class PlanningTimeoutError(StagecoachError):
    """Planning took longer than `planner.timeout_seconds`."""


class ParameterError(PlacedError):
    """A query parameter is missing, unknown or of the wrong type; placed where it is used."""


class CatalogError(StagecoachError):
    """The catalog or the files of one of its tables cannot be used."""


class OptionError(StagecoachError):
    """A planner option has an unknown name or a value out of its range."""


class InternalPlanError(StagecoachError):
    """A plan broke an invariant: our bug, never the user's."""


class GraphFormatError(StagecoachError):
    """A stage graph file cannot be read by this version."""


TOO_MANY_ROWS = (
    "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an "
    "expression. SQLSTATE: 21000"
)
"""What Spark says of a subquery that is a value and has several rows.

The planner's own SQL counts the rows, and `raise_error` has this message: it cannot raise another
condition than its own.
"""


def check_count(what: str, arity: tuple[int, int], found: int) -> None:
    """Refuse a wrong number of arguments.

    Args:
        what: What takes them, such as `function 'abs'`.
        arity: Fewest and most arguments.
        found: How many there are.

    Raises:
        AnalysisError: There are fewer or more.
    """
    fewest, most = arity
    if fewest <= found <= most:
        return
    if fewest == most:
        wanted = f"{fewest} argument{'' if fewest == 1 else 's'}"
    elif most >= 1 << 20:
        wanted = f"at least {fewest} argument{'' if fewest == 1 else 's'}"
    else:
        wanted = f"{fewest} to {most} arguments"
    raise AnalysisError(f"{what} takes {wanted}, not {found}")
