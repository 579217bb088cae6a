"""Finds the format of a table, by the catalog file's words or by the name in a snapshot."""

from __future__ import annotations

from stagecoach.infra.formats import names
from stagecoach.infra.formats.protocol import TableFormat
from stagecoach.planner.errors import CatalogError


def table_format(name: str) -> TableFormat:
    """Return the format of that name.

    Raises:
        CatalogError: There is none, in this version of Stagecoach.
    """
    found = names.find(name)
    if not isinstance(found, TableFormat):
        raise CatalogError(f"table format '{name}' not found (known formats: {names.known()})")
    return found
