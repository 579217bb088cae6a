"""The JSON of table versions, with a checksum of its own.

Worker code.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import google_crc32c

from stagecoach.planner.errors import (
    CatalogError,
    GraphFormatError,
    StagecoachError,
    UnsupportedSqlError,
)
from stagecoach.planner.plan.encoding import encode
from stagecoach.planner.plan.serde import decode
from stagecoach.planner.types import DataType, Field, parse_type

T = TypeVar("T")

_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    CatalogError,
    GraphFormatError,
    UnsupportedSqlError,
)
"""What readers of a text raise where it is not what was written."""


class TableVersionError(StagecoachError):
    """A version of a published table is damaged, or of a format that is not known."""


class UnknownFormatError(TableVersionError):
    """A version of a table is whole, but of a format that is not known."""


def seal(values: Mapping[str, Any]) -> bytes:
    """Return the text of these values: keys sorted, its own CRC-32C among them."""
    return dump({**values, "checksum": checksum(values)})


def unsealed(
    text: bytes,
    make: Callable[[dict[str, Any]], T],
    *,
    uri: str,
    format_versions: tuple[int, ...],
) -> T:
    """Return what is made of the values of a sealed text.

    Args:
        text: What `seal` returned.
        make: Takes the values without format version and checksum, and may change them.
        uri: Where the text was found, for messages.
        format_versions: Those that are read, the newest last.

    Raises:
        TableVersionError: It is damaged, has unknown fields or is of another format.
    """
    try:
        return make(_values(text, uri=uri, format_versions=format_versions))
    except _DAMAGE as error:
        raise TableVersionError(
            f"{uri} is damaged ({error}); restore it, or remove it to go back to the version "
            "before it"
        ) from error


def _values(text: bytes, *, uri: str, format_versions: tuple[int, ...]) -> dict[str, Any]:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("not an object")
    # First, for a damaged number of a format looks like that of another one.
    if values.pop("checksum", None) != checksum(values):
        raise ValueError("checksum mismatch")
    if (found := values.pop("format_version", None)) not in format_versions:
        raise UnknownFormatError(
            f"{uri} has format version {found!r}, this Stagecoach reads up to "
            f"{format_versions[-1]}; "
            "use a newer Stagecoach, or another storage root"
        )
    return values


def check_fields(kind: type[Any], values: Mapping[str, Any]) -> None:
    """Check that values are those of the fields of a dataclass.

    Raises:
        ValueError: One is missing or unknown.
    """
    known = {f.name for f in dataclasses.fields(kind)}
    if unknown := sorted(set(values) - known):
        raise ValueError(f"unknown field {unknown[0]!r}")
    if missing := sorted(known - set(values)):
        raise ValueError(f"field {missing[0]!r} is missing")


def type_to_json(dtype: DataType) -> Any:
    """Spark's spelling, which other tools can read, wherever it says all."""
    text = str(dtype)
    try:
        if parse_type(text) == dtype:
            return text
    except UnsupportedSqlError:
        pass  # a member's name that looks like a part of a type
    return encode(dtype)


def type_from_json(value: Any) -> DataType:
    """The type that `type_to_json` described.

    Raises:
        ValueError: It is not a type.
    """
    found = parse_type(value) if isinstance(value, str) else decode(value)
    if not isinstance(found, DataType):
        raise ValueError(f"{value!r} is not a type")
    return found


def columns_to_json(columns: Sequence[Field]) -> list[dict[str, Any]]:
    """Columns as plain values."""
    return [{"name": f.name, "type": type_to_json(f.dtype)} for f in columns]


def columns_from_json(columns: Sequence[Mapping[str, Any]]) -> tuple[Field, ...]:
    """The columns that `columns_to_json` described.

    Raises:
        ValueError: One has no type that is known.
        KeyError: One lacks its name or type.
    """
    return tuple(Field(c["name"], type_from_json(c["type"])) for c in columns)


def dump(values: Mapping[str, Any]) -> bytes:
    """Return plain values as JSON, keys sorted."""
    return json.dumps(values, sort_keys=True, ensure_ascii=False).encode()


def checksum(values: Mapping[str, Any]) -> int:
    """Return the CRC-32C of the values' text."""
    return int(google_crc32c.value(dump(values)))
