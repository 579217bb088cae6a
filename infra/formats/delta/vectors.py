"""Deletion vectors of a log as deletes of units: positions, or a place in a file."""

from __future__ import annotations

import uuid

from stagecoach.infra.formats.delta.log_files import Vector
from stagecoach.infra.formats.mapped_files.delete_files import decode_bitmap
from stagecoach.infra.formats.mapped_files.paths import canonical_path
from stagecoach.infra.reading.deletes import DeleteFile, UnitDeletes
from stagecoach.planner.errors import CatalogError

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_ID_DIGITS = 20  # of a UUID
_MAGIC = b"\xd1\xd3\x39\x64"
_FIRST = 1  # where the first vector of a file begins, behind the version of the format


def unit_deletes(vector: Vector, location: str) -> UnitDeletes:
    """Return the rows that a vector deletes.

    Args:
        vector: The vector.
        location: The table's folder.

    Raises:
        CatalogError: The vector is damaged or of a kind that is not known.
    """
    if vector.kind == "i":
        return UnitDeletes(positions=_inline(vector))
    if vector.kind == "u":
        prefix, digits = vector.place[:-_ID_DIGITS], vector.place[-_ID_DIGITS:]
        name = f"deletion_vector_{uuid.UUID(bytes=z85_bytes(digits))}.bin"
        uri = "/".join([location, *([prefix] if prefix else []), name])
    elif vector.kind == "p":
        uri = canonical_path(vector.place)
    else:
        raise CatalogError(f"a deletion vector has the storage type {vector.kind!r}")
    offset = _FIRST if vector.offset is None else vector.offset
    return UnitDeletes(files=(DeleteFile(uri, "positions", offset=offset),))


def _inline(vector: Vector) -> tuple[int, ...]:
    raw = z85_bytes(vector.place)[: vector.size]
    try:
        if raw[:4] != _MAGIC:
            raise ValueError(f"it begins with {raw[:4].hex()}")
        found = decode_bitmap(memoryview(raw)[4:])
    except (ValueError, IndexError) as error:
        raise CatalogError(f"a deletion vector in the Delta log is damaged: {error}") from error
    if len(found) != vector.cardinality:
        raise CatalogError(
            f"a deletion vector in the Delta log is damaged: it has {len(found)} positions instead "
            f"of {vector.cardinality}"
        )
    return tuple(found.tolist())


def z85_bytes(text: str) -> bytes:
    """Return the bytes of a text in Z85, five digits for four bytes.

    Raises:
        CatalogError: It is not Z85.
    """
    found = bytearray()
    try:
        if len(text) % 5:
            raise ValueError(f"{len(text)} digits")
        for start in range(0, len(text), 5):
            number = 0
            for digit in text[start : start + 5]:
                number = number * 85 + _VALUES[digit]
            found += number.to_bytes(4, "big")
    except (KeyError, ValueError, OverflowError) as error:
        raise CatalogError(f"a deletion vector in the Delta log is not Z85: {error}") from error
    return bytes(found)
