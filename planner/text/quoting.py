"""Quote names and texts for an engine's SQL, whatever characters they hold."""

from __future__ import annotations

from stagecoach.planner.errors import UnsupportedSqlError

# NUL as three octal digits: after fewer, digits that follow would be taken for part of it.
_SPARK_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\x00": "\\000"}
)


def duckdb_name(name: str) -> str:
    """A name as DuckDB reads it."""
    return '"' + name.replace('"', '""') + '"'


def spark_name(name: str) -> str:
    """A name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


def duckdb_text(text: str) -> str:
    """A text literal of DuckDB's SQL.

    Raises:
        UnsupportedSqlError: The text holds the character NUL, which DuckDB's SQL cannot.
    """
    if "\x00" in text:
        raise UnsupportedSqlError("DuckDB's SQL cannot hold the character NUL")
    return "'" + text.replace("'", "''") + "'"


def spark_text(text: str) -> str:
    """A text literal of Spark's SQL."""
    return f"'{text.translate(_SPARK_ESCAPES)}'"
