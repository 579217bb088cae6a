"""Escape text for use inside templates of DuckDB SQL.

Spellings are `str.format` templates in which `{0}` is the first argument, so literal braces must be
doubled.
"""

from __future__ import annotations

from stagecoach.planner.text.quoting import duckdb_name


def escaped(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def quoted(text: str) -> str:
    """A DuckDB text literal, inside a template."""
    return escaped("'" + text.replace("'", "''") + "'")


def quoted_name(text: str) -> str:
    """A quoted name in DuckDB, inside a template."""
    return escaped(duckdb_name(text))
