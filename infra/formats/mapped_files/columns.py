"""The columns of a table of mapped files, by their field ids.

    table (by id)                 file (by id)
    1 key     bigint       ◀──    1 k    int          promoted and renamed
    2 place   struct       ◀──    2 place struct      members go by their ids, too
      5 city  string                6 x   double
      6 lon   double                5 city string
    7 state   string 'new'        (lacking)           its initial default

A format without ids of its own numbers its columns by the names that files have for them.

Worker code: plain data that travels to executors, which need no library of the format.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.types import DataType, parse_column_type

_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class MappedColumn:
    """A column of a table, or a member of one.

    Args:
        field_id: Its id, which it keeps for good.
        name: Its present name.
        dtype: Its type as Spark has it.
        members: Members of a struct, the element of an array, key and value of a map.
        default: What it is in files that lack it, as text that a cast turns into its type (hex
            digits for binary); None for NULL.
    """

    field_id: int
    name: str
    dtype: DataType
    members: tuple[MappedColumn, ...] = ()
    default: str | None = None

    def to_list(self) -> list[Any]:
        """Return plain data for `from_list`."""
        members = [member.to_list() for member in self.members]
        return [self.field_id, self.name, str(self.dtype), members, self.default]

    @classmethod
    def from_list(cls, values: list[Any]) -> MappedColumn:
        """Return the column that `to_list` described."""
        field_id, name, dtype, members, default = values
        found = tuple(map(cls.from_list, members))
        return cls(field_id, name, parse_column_type(dtype), found, default)


@dataclass(frozen=True)
class MappedName:
    """Which field a column stands for in files whose columns go by names.

    Args:
        names: Names that it has in such files.
        field_id: The field; None where only members are mapped.
        members: The same for its members.
    """

    names: tuple[str, ...]
    field_id: int | None
    members: tuple[MappedName, ...] = ()

    def to_list(self) -> list[Any]:
        """Return plain data for `from_list`."""
        return [list(self.names), self.field_id, [member.to_list() for member in self.members]]

    @classmethod
    def from_list(cls, values: list[Any]) -> MappedName:
        """Return the mapping that `to_list` described."""
        names, field_id, members = values
        return cls(tuple(names), field_id, tuple(map(cls.from_list, members)))


def value_text(value: Any, dtype: DataType) -> str:
    """Return a value of a column as `MappedColumn.default` has it.

    Args:
        value: Days of a date, microseconds of a time, or Python's own types.
        dtype: Type of the column.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if dtype.kind == "date" and isinstance(value, int):
        return (_EPOCH + datetime.timedelta(days=value)).date().isoformat()
    if dtype.kind in ("timestamp", "timestamp_ntz") and isinstance(value, int):
        moment = _EPOCH + datetime.timedelta(microseconds=value)
        return moment.isoformat(" ") + ("+00:00" if dtype.kind == "timestamp" else "")
    return repr(value) if isinstance(value, float) else str(value)


def by_id(columns: Iterable[MappedColumn]) -> dict[int, MappedColumn]:
    """Return columns and all their members by field id."""
    return {column.field_id: column for column in _walk(columns)}


def _walk(columns: Iterable[MappedColumn]) -> Iterator[MappedColumn]:
    for column in columns:
        yield column
        yield from _walk(column.members)
