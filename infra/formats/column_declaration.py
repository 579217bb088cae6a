"""The key `columns` of a table in the catalog file: its columns, whatever files there are.

    tables:
      orders:
        location: data/orders
        columns:
          id: BIGINT NOT NULL
          amount: {type: "DECIMAL(12,2)", comment: in EUR}
          address: "STRUCT<street: STRING, city: STRING>"
          day: DATE                      # columns of partition folders stand last

Queries over such a table are planned before there is a file of it, and its files are read as these
columns, as by Spark's `spark.read.schema(…)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stagecoach.planner.catalog import ColumnNotes
from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
from stagecoach.planner.types import DataType, Field, parse_type, to_arrow

_KEYS = ("type", "nullable", "comment")
_NOT_NULL = re.compile(r"(.*\S)\s+NOT\s+NULL\s*", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class DeclaredColumns:
    """The columns of a table as the catalog file declares them.

    Args:
        fields: Names and types; columns of partition folders last.
        notes: What else is declared of some of them, by name.
    """

    fields: tuple[Field, ...]
    notes: Mapping[str, ColumnNotes]

    @property
    def not_null(self) -> frozenset[str]:
        """Columns that hold no NULL, lower-case names."""
        return frozenset(name.lower() for name, note in self.notes.items() if not note.nullable)


def read_columns(place: str, body: object) -> DeclaredColumns:
    """Return the columns that a table declares.

    Args:
        place: Where the table stands, for messages.
        body: The value of the key `columns`.

    Raises:
        CatalogError: It does not declare columns, or one of a type that tables do not have.
    """
    if not isinstance(body, Mapping) or not body:
        raise CatalogError(
            f"{place}: 'columns' must map names of columns to their types, such as "
            f"{{id: BIGINT}}, not {body!r}"
        )
    fields: list[Field] = []
    notes: dict[str, ColumnNotes] = {}
    seen: dict[str, str] = {}
    for name, value in body.items():
        if not isinstance(name, str) or not name:
            raise CatalogError(f"{place}: column name {name!r} is not text; put it in quotes")
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise CatalogError(
                f"{place}: columns {other!r} and {name!r} have the same name (case does not "
                "matter); rename one"
            )
        dtype, note = _column(f"{place}, column {name!r}", value)
        fields.append(Field(name, dtype))
        if note != ColumnNotes():
            notes[name] = note
    return DeclaredColumns(tuple(fields), notes)


def _column(place: str, value: object) -> tuple[DataType, ColumnNotes]:
    body = value if isinstance(value, Mapping) else {"type": value}
    for key in body:
        if key not in _KEYS:
            raise CatalogError(f"{place}: unknown key {key!r} (known keys: {', '.join(_KEYS)})")
    text = body.get("type")
    if not isinstance(text, str) or not text.strip():
        raise CatalogError(
            f"{place}: 'type' must name a type of Spark, such as BIGINT, not {text!r}"
        )
    nullable = _nullable(place, body)
    if (match := _NOT_NULL.fullmatch(text)) is not None:
        text = match[1]
        if nullable:
            raise CatalogError(f"{place}: its type says NOT NULL and 'nullable' is true")
        nullable = False
    comment = body.get("comment", "")
    if not isinstance(comment, str):
        raise CatalogError(f"{place}: 'comment' must be text, not {comment!r}")
    return _type(place, text), ColumnNotes(comment.strip(), nullable is not False)


def _nullable(place: str, body: Mapping[Any, Any]) -> bool | None:
    nullable = body.get("nullable")
    if nullable is not None and not isinstance(nullable, bool):
        raise CatalogError(f"{place}: 'nullable' must be true or false, not {nullable!r}")
    return nullable


def _type(place: str, text: str) -> DataType:
    try:
        dtype = parse_type(text)
        to_arrow(dtype)
    except (UnsupportedSqlError, ValueError) as error:
        raise CatalogError(f"{place}: {text!r} is not a type of a column: {error}") from error
    if any(part.is_interval or part.kind == "void" for part in _parts(dtype)):
        raise CatalogError(f"{place}: files cannot be read as columns of type {dtype}")
    return dtype


def _parts(dtype: DataType) -> Sequence[DataType]:
    return [dtype, *(part for field in dtype.fields for part in _parts(field.dtype))]
