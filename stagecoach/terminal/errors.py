"""Formats errors for people: one block that says what, where and what to do.

    error: column 'l_okey' not found in 'lineitem'; did you mean 'l_orderkey'?
      --> queries/q03.sql:5:3
       |
     5 |   l_okey,
       |   ^

Describing an error never raises, and no block ever holds a traceback or a secret.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stagecoach.infra.engines.spark.message import clean_message, place_in
from stagecoach.infra.storage import secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_SQLSTATE = re.compile(r"SQLSTATE: (\w\w)\w{3}")


@dataclass(frozen=True)
class Source:
    """Where a query's text comes from.

    Args:
        name: The file as the user named it, or what stands for it.
        sql: The text.
        start: Line and column of the text where the query begins: a script has several.
    """

    name: str
    sql: str
    start: tuple[int, int] = (1, 1)

    def place(self, line: int, column: int | None) -> tuple[int, int]:
        """The line and column of the text that a place in the query is at."""
        shift = self.start[1] - 1 if line == 1 else 0
        return line + self.start[0] - 1, max(column or 1, 1) + shift


def report_error(error: Exception, source: Source | None, *, debug: bool) -> int:
    """Print an error of a query; return the exit code that it asks for."""
    if debug:
        click.echo(traceback_text(), err=True)
    click.echo(describe_error(error, source), err=True)
    return exit_code(error)


def exit_code(error: BaseException) -> int:
    """2 where nothing could be run because of what the user gave, 130 for Ctrl-C, else 1."""
    from stagecoach.infra.errors import ConfigError
    from stagecoach.planner import errors

    if isinstance(error, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    usage = (
        errors.SqlError,
        errors.ParameterError,
        errors.OptionError,
        errors.CatalogError,
        errors.GraphFormatError,
        ConfigError,
    )
    if isinstance(error, usage) or type(error).__name__ in ("FrontMatterError", "ProjectError"):
        return EXIT_USAGE
    # Spark's own refusal: class 42 is "syntax error or access rule violation", so a mistake in
    # the SQL; 22, "data exception", is a run that failed.
    state = _SQLSTATE.search(str(error))
    if type(error).__name__ == "QueryFailedError" and state and state[1] == "42":
        return EXIT_USAGE
    return EXIT_FAILED


def describe_error(error: BaseException, source: Source | None = None) -> str:
    """The block for an error, without a line end.

    Args:
        error: What was raised.
        source: The query that it is about, if any.
    """
    from stagecoach.infra.errors import ConfigError, with_doctor
    from stagecoach.planner.errors import PlacedError, StagecoachError

    if type(error).__name__ == "FrontMatterError":
        found = [(p.message, p.line, p.column) for p in getattr(error, "problems", ())]
        return "\n".join(_block(text, source, line, column) for text, line, column in found)
    line, column = None, None
    if isinstance(error, PlacedError):
        message, line, column = error.message, error.line, error.column
    elif isinstance(error, ConfigError):
        message = str(error)  # ours; what a JVM printed before it ended may look like a plan
    elif isinstance(error, StagecoachError):
        message = clean_message(str(error))
        if type(error).__name__ == "QueryFailedError":
            # Spark ran the query's own text, so its places are the file's.
            line, column = place_in(str(error)) or (None, None)
    elif isinstance(error, KeyboardInterrupt):
        message = "interrupted"
    elif isinstance(error, OSError):
        message = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    else:
        first = str(error).strip().splitlines()
        message = (
            f"internal error ({type(error).__name__}): {first[0] if first else 'no message'}\n"
            "this is a bug in Stagecoach; run again with --debug and report what it prints"
        )
    return _block(secrets.redact(with_doctor(message, error)), source, line, column)


def traceback_text() -> str:
    """The traceback of the exception at hand, for `--debug`, without secrets."""
    return secrets.redact(traceback.format_exc().rstrip())


def _block(message: str, source: Source | None, line: int | None, column: int | None) -> str:
    head, *rest = message.splitlines() or [""]
    lines = [f"error: {head}"]
    lines += [f"  {text}" for text in rest]
    lines += _excerpt(source, line, column)
    return "\n".join(lines)


def _excerpt(source: Source | None, line: int | None, column: int | None) -> Iterable[str]:
    if source is None:
        return []
    lines = source.sql.splitlines()
    if line is None or line < 1:
        return [f"  --> {source.name}"]
    line, column = source.place(line, column)
    if line > len(lines):
        return [f"  --> {source.name}"]
    text = lines[line - 1]
    number = str(line)
    gutter = " " * len(number)
    column = min(column, len(text) + 1)
    # Tabs before the caret stay tabs, so that it stands below its character.
    indent = "".join(c if c == "\t" else " " for c in text[: column - 1])
    return [
        f"  --> {source.name}:{line}:{column}",
        f" {gutter} |",
        f" {number} | {text.rstrip()}",
        f" {gutter} | {indent}^",
    ]
