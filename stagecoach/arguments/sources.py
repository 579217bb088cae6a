"""Reads SQL files that are named on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from stagecoach.terminal.errors import Source

STDIN = "-"


def read_source(path: str) -> Source:
    """The text of a SQL file, or of standard input for `-`.

    Raises:
        click.UsageError: The file cannot be read, or is not UTF-8.
    """
    if path.endswith(".json"):
        raise click.UsageError(
            f"{path} is not SQL; if it is a compiled plan, run it with `query --plan {path}`"
        )
    if path == STDIN:
        return Source(name="standard input", sql=sys.stdin.read())
    try:
        # utf-8-sig: editors on Windows put a byte order mark first, which is no SQL.
        return Source(name=path, sql=Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"{path} is not UTF-8 text ({error.reason}); save it as UTF-8"
        ) from None
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror or error}") from None


def query_name(path: str) -> str:
    """What a query is called: its file without the ending."""
    return "query" if path == STDIN else Path(path).stem


def check_names(paths: Sequence[str]) -> None:
    """Refuse files that would write to the same output.

    Raises:
        click.UsageError: Two files have the same name.
    """
    seen: dict[str, str] = {}
    for path in paths:
        other = seen.setdefault(query_name(path).lower(), path)
        if other != path or paths.count(path) > 1:
            raise click.UsageError(
                f"{other} and {path} would both be written as {query_name(path)}.parquet; "
                "rename one, or run them apart"
            )
