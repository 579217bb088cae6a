"""Values of functions that are called once for each row: Arrow to Python's own objects and back.

Worker code. They are those of a Python UDF of Spark that is optimised with Arrow: numbers, `str`,
`bytes`, `Decimal`, `date`, lists, dicts, and for structs records whose members are read by name,
key or position. A TIMESTAMP is a `datetime` without a zone, the wall clock of the session's time
zone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from stagecoach.planner.types import DataType, to_arrow

Convert = Callable[[Any], Any]


class Record(tuple[Any, ...]):
    """A struct: `r.a`, `r["a"]` and `r[0]`, as of Spark's `Row`."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in self._names:
            return self[self._names.index(name)]
        raise AttributeError(f"the struct has no member '{name}'; it has {', '.join(self._names)}")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(key)
            key = self._names.index(key)
        return super().__getitem__(key)

    def asDict(self) -> dict[str, Any]:
        """The members by name."""
        return dict(zip(self._names, self, strict=True))


def to_python(column: pa.Array, dtype: DataType, zone: ZoneInfo) -> list[Any]:
    """The values of a column, of which NULL is None."""
    values: list[Any] = column.to_pylist()
    convert = _reader(dtype, zone)
    return values if convert is None else [None if v is None else convert(v) for v in values]


def from_python(values: Sequence[Any], dtype: DataType, zone: ZoneInfo) -> pa.Array:
    """A column of values as a function returns them.

    Raises:
        pa.ArrowException, TypeError, ValueError, ArithmeticError: A value is not one of the type.
    """
    convert = _writer(dtype, zone)
    if convert is not None:
        values = [None if v is None else convert(v) for v in values]
    target = to_arrow(dtype)
    try:
        return pa.array(values, target)
    except pa.ArrowInvalid:  # as Spark: values of another type that cast to this one
        return pa.array(values).cast(target)


def _reader(dtype: DataType, zone: ZoneInfo) -> Convert | None:
    match dtype.kind:
        case "timestamp":
            return lambda value: value.astimezone(zone).replace(tzinfo=None)
        case "array":
            inner = _reader(dtype.fields[0].dtype, zone)
            return inner and (lambda value: [_of(inner, v) for v in value])
        case "map":
            key, item = (_reader(f.dtype, zone) for f in dtype.fields)
            return lambda value: {_of(key, k): _of(item, v) for k, v in value}
        case "struct":
            names = tuple(f.name for f in dtype.fields)
            readers = [_reader(f.dtype, zone) for f in dtype.fields]
            kind = type("Record", (Record,), {"__slots__": (), "_names": names})
            pairs = list(zip(names, readers, strict=True))
            return lambda value: kind(_of(read, value[name]) for name, read in pairs)
    return None


def _writer(dtype: DataType, zone: ZoneInfo) -> Convert | None:
    match dtype.kind:
        case "timestamp":
            return lambda value: _instant(value, zone)
        case "decimal":
            unit = Decimal(1).scaleb(-dtype.scale)
            digits = Context(prec=dtype.precision, rounding=ROUND_HALF_EVEN)
            return lambda value: _decimal(value, unit, digits)
        case "string":
            return _text
        case "array":
            inner = _writer(dtype.fields[0].dtype, zone)
            return lambda value: [_of(inner, v) for v in value]
        case "map":
            key, item = (_writer(f.dtype, zone) for f in dtype.fields)
            return lambda value: [(_of(key, k), _of(item, v)) for k, v in value.items()]
        case "struct":
            names = [f.name for f in dtype.fields]
            writers = [_writer(f.dtype, zone) for f in dtype.fields]
            return lambda value: {
                name: _of(write, member)
                for name, write, member in zip(names, writers, _members(value, names), strict=True)
            }
    return None


def _of(convert: Convert | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _members(value: Any, names: list[str]) -> list[Any]:
    if isinstance(value, dict):
        if unknown := sorted(map(str, value.keys() - set(names))):
            raise ValueError(f"the struct has no member '{unknown[0]}'")
        return [value.get(name) for name in names]
    members = list(value)
    if len(members) != len(names):
        raise ValueError(f"the struct has {len(names)} members, not {len(members)}")
    return members


def _instant(value: datetime, zone: ZoneInfo) -> datetime:
    return value.replace(tzinfo=zone) if value.tzinfo is None else value


def _decimal(value: Any, unit: Decimal, digits: Context) -> Any:
    """A decimal of as many digits as are declared; Spark rounds these half to even."""
    if not isinstance(value, Decimal):
        return value
    return None if value.is_nan() else value.quantize(unit, context=digits)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
