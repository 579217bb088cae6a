"""The names of all table formats, and where each is; imports none of them.

A format is added with one line here and, if the planner must know of it, one in
`stagecoach.planner.formats.registry`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stagecoach.planner.registry import Registry

FILES = "files"
"""The `kind` of a table in the catalog file whose `format` is given by itself."""

BY_FORMAT: Registry[object] = Registry(
    {
        "parquet": "stagecoach.infra.formats.parquet.table_format:FORMAT",
        "iceberg": "stagecoach.infra.formats.iceberg.table_format:FORMAT",
        "delta": "stagecoach.infra.formats.delta.table_format:FORMAT",
        "csv": "stagecoach.infra.formats.text_files.csv_format:FORMAT",
        "json": "stagecoach.infra.formats.text_files.json_format:FORMAT",
        "orc": "stagecoach.infra.formats.orc.table_format:FORMAT",
        "text": "stagecoach.infra.formats.text_files.lines_format:FORMAT",
    }
)
"""Formats of files, by `format` in the catalog file; the first is the default."""

BY_KIND: Registry[object] = Registry(
    {"deduplicated": "stagecoach.infra.formats.deduplicated.table_format:FORMAT"}
)
"""Formats that manage their own files, by `kind` in the catalog file."""

MADE: Registry[object] = Registry(
    {
        "published": "stagecoach.infra.formats.published.table_format:FORMAT",
        "iceberg": "stagecoach.infra.formats.iceberg.table_format:FORMAT",
        "delta": "stagecoach.infra.formats.delta.table_format:FORMAT",
    }
)
"""Formats of tables that queries make, which are in no catalog file; the first is the default."""

ABOUT: Registry[object] = Registry(
    {"metadata": "stagecoach.infra.formats.metadata.table_format:FORMAT"}
)
"""The format of tables about other tables, such as `orders.files`."""

_UNNAMED = ("parquet", "published", "deduplicated")


def find(name: str) -> object | None:
    """Return the format of that name, or None."""
    for registry in (BY_FORMAT, BY_KIND, MADE, ABOUT):
        if (found := registry.get(name)) is not None:
            return found
    return None


def known() -> str:
    """Return all names, for messages."""
    return ", ".join(dict.fromkeys((*BY_FORMAT.names, *BY_KIND.names, *MADE.names)))


def stored_name(name: str) -> dict[str, str]:
    """Return what a run's snapshot writes down of a table's format."""
    return {} if name in _UNNAMED else {"format": name}


def name_of_stored(body: Mapping[str, Any]) -> str:
    """Return the format of a table in a run's snapshot.

    The formats of the first snapshots are told by what else stands there.
    """
    if "format" in body:
        return str(body["format"])
    if "dedup" in body:
        return "deduplicated"
    return "parquet" if body.get("version") is None else "published"
