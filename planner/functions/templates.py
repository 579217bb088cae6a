"""Text inside templates of DuckDB SQL: in, any text; out, what `str.format` makes that text of.

Spellings are templates: `{0}` is the first argument. So braces that are meant are doubled.
"""

from __future__ import annotations


def escaped(text: str) -> str:
    """Text that `str.format` leaves as it is."""
    return text.replace("{", "{{").replace("}", "}}")


def quoted(text: str) -> str:
    """A DuckDB text literal, inside a template."""
    return "'" + escaped(text.replace("'", "''")) + "'"


def quoted_name(text: str) -> str:
    """A quoted name in DuckDB, inside a template."""
    return '"' + escaped(text.replace('"', '""')) + '"'
