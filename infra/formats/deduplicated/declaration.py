"""What the catalog file declares of a deduplicated table: its key and the roles of columns.

    metrics:
      kind: deduplicated
      location: data/metrics          # a folder of its own, or s3://bucket/folder
      primary_key: [device, time]
      time_column: time
      partition_by: [region]
      version_column: updated_at
      delete_column: is_deleted
      chunk_interval: 1d

The first write keeps the declaration in the table itself. What the catalog file says later must be
the same: another key would make other rows of the files that are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.errors import CatalogError
from stagecoach.planner.formats.deduplicated.chunk import DedupTable
from stagecoach.planner.types import Field

KIND = "deduplicated"
DECLARATION_KEYS = (
    "primary_key",
    "time_column",
    "partition_by",
    "version_column",
    "delete_column",
    "chunk_interval",
)
RESERVED_PREFIX = "__"
_INTERVAL = re.compile(r"(\d+)\s*([smhdw])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Key and roles of columns of a deduplicated table.

    Attributes:
        primary_key: Columns of which each value is shown once.
        time_column: Column by which chunks are told apart, or None.
        partition_by: Columns of whose values a chunk holds one each.
        version_column: Column that decides which of two rows is newer, or None.
        delete_column: Boolean column that marks a row as deleted, or None.
        chunk_interval: Seconds of the time column (units of a whole number) that a chunk spans at
            most; None for any. Rows are divided when they are written.
    """

    primary_key: tuple[str, ...]
    time_column: str | None = None
    partition_by: tuple[str, ...] = ()
    version_column: str | None = None
    delete_column: str | None = None
    chunk_interval: int | None = None

    @property
    def role_columns(self) -> tuple[str, ...]:
        """All columns that have a role, each once."""
        single = (self.time_column, self.version_column, self.delete_column)
        names = (*self.primary_key, *self.partition_by, *(n for n in single if n is not None))
        return tuple(dict.fromkeys(names))

    def table(self, name: str, columns: tuple[Field, ...]) -> DedupTable:
        """Return the table with its columns.

        Raises:
            CatalogError: A column of the declaration is missing or of a type that does not fit.
        """
        return DedupTable(
            name=name,
            columns=columns,
            primary_key=self.primary_key,
            time_column=self.time_column,
            partition_by=self.partition_by,
            version_column=self.version_column,
            delete_column=self.delete_column,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {**vars(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Declaration:
        """Return the declaration that `to_dict` described."""
        lists = {name: tuple(values[name]) for name in ("primary_key", "partition_by")}
        return cls(**{**values, **lists})

    def difference(self, other: Declaration) -> str | None:
        """Return the first thing that is declared otherwise in `other`, in words, or None.

        `chunk_interval` may change: it decides about rows to come only.
        """
        for name in DECLARATION_KEYS:
            ours, theirs = getattr(self, name), getattr(other, name)
            if name != "chunk_interval" and ours != theirs:
                return f"its {name} is {_shown(ours)} there and {_shown(theirs)} here"
        return None


def read_declaration(place: str, body: Mapping[Any, Any]) -> Declaration:
    """Return what a table of the catalog file declares.

    Args:
        place: Where it stands, for messages.
        body: The table's mapping.

    Raises:
        CatalogError: A key is missing or its value does not fit.
    """
    primary_key = _names(place, body, "primary_key")
    if not primary_key:
        raise CatalogError(
            f"{place}: 'primary_key' is missing; name the columns of which each value is shown once"
        )
    made = Declaration(
        primary_key=primary_key,
        time_column=_name(place, body, "time_column"),
        partition_by=_names(place, body, "partition_by"),
        version_column=_name(place, body, "version_column"),
        delete_column=_name(place, body, "delete_column"),
        chunk_interval=_interval(place, body.get("chunk_interval")),
    )
    if made.delete_column in made.primary_key:
        raise CatalogError(f"{place}: 'delete_column' cannot belong to 'primary_key'")
    if made.chunk_interval is not None and made.time_column not in made.primary_key:
        raise CatalogError(
            f"{place}: 'chunk_interval' needs a 'time_column' that belongs to 'primary_key'"
        )
    for name in made.role_columns:
        if name.startswith(RESERVED_PREFIX):
            raise CatalogError(f"{place}: names that start with '__' are Stagecoach's: '{name}'")
    return made


def _names(place: str, body: Mapping[Any, Any], key: str) -> tuple[str, ...]:
    value = body.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(n, str) and n for n in value):
        raise CatalogError(f"{place}: '{key}' must be a list of column names, not {value!r}")
    if len({name.lower() for name in value}) != len(value):
        raise CatalogError(f"{place}: '{key}' names a column twice")
    return tuple(value)


def _name(place: str, body: Mapping[Any, Any], key: str) -> str | None:
    value = body.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise CatalogError(f"{place}: '{key}' must be the name of a column, not {value!r}")
    return value


def _interval(place: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _INTERVAL.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or not int(match[1]):
        raise CatalogError(
            f"{place}: 'chunk_interval' must be a number and s, m, h, d or w, such as 1d, "
            f"not {value!r}"
        )
    return int(match[1]) * _UNIT_SECONDS[match[2]]


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value or "none")
