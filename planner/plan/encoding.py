"""Encode plan values as plain JSON data, in one form for storage and for hashes.

Each dataclass is stored with the name of its class; `serde` reads it back.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from stagecoach.planner.types import DataType

# Asked for at every node of a plan.
_FIELD_NAMES: dict[tuple[type[Any], bool], tuple[str, ...]] = {}

_SPARSE: dict[type[Any], dict[str, object]] = {}

SPARSE = "sparse"
"""Key of a field's metadata; see `sparse_fields`."""

Json = None | bool | int | float | str | list[Any] | dict[str, Any]


def encode(value: object, *, names: bool = True) -> Json:
    """Plain JSON data for a plan value.

    Args:
        value: A plan node, expression, type, or tuple of such.
        names: Whether display names (fields that do not take part in comparisons) are kept.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple):
        return [encode(item, names=names) for item in value]
    if isinstance(value, DataType):
        return {"type": str(value)} if value.is_atomic else _encode_fields(value, names)
    if dataclasses.is_dataclass(value):
        return _encode_fields(value, names)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode_fields(value: Any, names: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"node": type(value).__name__}
    sparse = sparse_fields(type(value))
    for name in _field_names(type(value), names):
        found = getattr(value, name)
        if name not in sparse or found != sparse[name]:
            data[name] = encode(found, names=names)
    return data


def sparse_fields(cls: type[Any]) -> dict[str, object]:
    """The fields that are left out where they have their default, each with the default.

    They came later than the format: plans that do not need them are written as before.
    """
    known = _SPARSE.get(cls)
    if known is None:
        fields = (f for f in dataclasses.fields(cls) if f.metadata.get(SPARSE))
        known = _SPARSE[cls] = {f.name: f.default for f in fields}
    return known


def _field_names(cls: type[Any], names: bool) -> tuple[str, ...]:
    known = _FIELD_NAMES.get((cls, names))
    if known is None:
        known = tuple(f.name for f in dataclasses.fields(cls) if names or f.compare)
        _FIELD_NAMES[cls, names] = known
    return known
