"""Texts of versions: in, plain values; out, JSON with its own checksum, and back.

Worker code.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import google_crc32c

from planner.encoding import encode
from planner.errors import StagecoachError, UnsupportedSqlError
from planner.serde import decode
from planner.types import DataType, parse_type


class TableVersionError(StagecoachError):
    """A version of a published table is damaged, or of a format that is not known."""


def seal(values: Mapping[str, Any]) -> bytes:
    """Return the text of these values: keys sorted, its own CRC-32C among them."""
    return dump({**values, "checksum": checksum(values)})


def unseal(text: bytes, *, uri: str, format_version: int) -> dict[str, Any]:
    """Return the values of a sealed text, without its format version and checksum.

    Raises:
        TableVersionError: It is of another format.
        ValueError: It is damaged.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("not an object")
    if (found := values.pop("format_version", None)) != format_version:
        raise TableVersionError(
            f"{uri} has format version {found!r}, this Stagecoach reads {format_version}; "
            "use a newer Stagecoach, or another storage root"
        )
    if values.pop("checksum", None) != checksum({"format_version": format_version, **values}):
        raise ValueError("its checksum does not fit")
    return values


def damaged(uri: str, error: Exception) -> TableVersionError:
    """Return the error to raise where a text cannot be read."""
    return TableVersionError(
        f"{uri} is damaged ({error}); restore it, or remove it to go back to the version before it"
    )


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
        ValueError: It is no type.
    """
    found = parse_type(value) if isinstance(value, str) else decode(value)
    if not isinstance(found, DataType):
        raise ValueError(f"{value!r} is no type")
    return found


def dump(values: Mapping[str, Any]) -> bytes:
    """Return plain values as JSON, keys sorted."""
    return json.dumps(values, sort_keys=True, ensure_ascii=False).encode()


def checksum(values: Mapping[str, Any]) -> int:
    """Return the CRC-32C of the values' text."""
    return int(google_crc32c.value(dump(values)))
