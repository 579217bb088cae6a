"""Reads a column of a file as a column of the table, where their types differ, as Spark does.

A table's files may have been written with different columns. What Spark reads of a file whose
column has another type is decided here, and nowhere else:

    type in the file               type in the table            read by
    ----------------------------   --------------------------   -------
    tinyint, smallint, int         a wider one, or bigint       any engine
    tinyint, smallint, int         double                       any engine
    tinyint, smallint, int         decimal(p,s), p - s >= 10    any engine
    bigint                         decimal(p,s), p - s >= 20    any engine
    float                          double                       any engine
    decimal(p,s)                   at least as many digits on   any engine
                                   both sides of the point
    date                           timestamp_ntz                any engine
    smallint, int                  a narrower one               Spark only: it drops the high bits
    string, binary                 the other one                Spark only
    timestamp, timestamp_ntz       the other one, bigint        Spark only: the microseconds
    tinyint, smallint, int         date                         Spark only: days since 1970
    date                           whole numbers, double        Spark only: days since 1970
    decimal                        binary                       Spark only: the stored bytes
    struct, array, map             the same with members that   as the members
                                   are read so; struct members
                                   go by name, missing ones
                                   are NULL
    anything else                  anything else                nobody: Spark refuses it

A column that a file lacks is NULL in its rows. One thing that Spark reads is refused: a decimal
that a file stores as an integer, read as a number of another kind or a date, of which Spark takes
the digits without the point. `tests/differential/test_widening.py` asks Spark about each pair.

Source: Spark's `ParquetVectorUpdaterFactory`.

Worker code.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.reading.file_bounds import StoredBounds
from stagecoach.planner.catalog import StatValue
from stagecoach.planner.types import DataType

Readers = Literal["any", "spark", "none"]

_SMALL = ("tinyint", "smallint", "int")
_INTEGERS = (*_SMALL, "bigint")
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}  # as Spark counts them
_DAY_MICROS = 86_400_000_000
_ORDER: tuple[Readers, ...] = ("any", "spark", "none")


def readers(stored: DataType, wanted: DataType) -> Readers:
    """Return who reads a column of a file with the type `stored` as one of type `wanted`."""
    if stored == wanted:
        return "any"
    if stored.is_atomic or stored.kind != wanted.kind:
        return _readers_of_atomic(stored, wanted)
    if stored.kind != "struct":
        pairs = zip(stored.fields, wanted.fields, strict=True)
        return _fewest([readers(ours.dtype, theirs.dtype) for ours, theirs in pairs])
    members = {field.name.lower(): field.dtype for field in stored.fields}
    if len(members) < len(stored.fields):  # Spark raises where a query reads such a struct
        return "spark"
    found = [
        readers(members[field.name.lower()], field.dtype)
        for field in wanted.fields
        if field.name.lower() in members
    ]
    # Whether such a struct is NULL is told by members that nobody asks for.
    return _fewest(found) if found else "spark"


def _readers_of_atomic(stored: DataType, wanted: DataType) -> Readers:
    if stored.kind in _INTEGERS and wanted.kind in _INTEGERS:
        if _INTEGERS.index(stored.kind) < _INTEGERS.index(wanted.kind):
            return "any"
        return "spark" if stored.kind in _SMALL else "none"
    match stored.kind, wanted.kind:
        case ("tinyint" | "smallint" | "int", "double") | ("float", "double"):
            return "any"
        case ("tinyint" | "smallint" | "int" | "bigint", "decimal"):
            return "any" if wanted.precision - wanted.scale >= _DIGITS[stored.kind] else "none"
        case "decimal", "decimal":
            scale = wanted.scale - stored.scale
            return "any" if 0 <= scale <= wanted.precision - stored.precision else "none"
        case "date", "timestamp_ntz":
            return "any"
        case (
            ("string", "binary")
            | ("binary", "string")
            | ("decimal", "binary")
            | ("tinyint" | "smallint" | "int", "date")
            | ("date", "tinyint" | "smallint" | "int" | "bigint" | "double")
            | ("timestamp", "timestamp_ntz" | "bigint")
            | ("timestamp_ntz", "timestamp" | "bigint")
        ):
            return "spark"
    return "none"


def _fewest(found: list[Readers]) -> Readers:
    return max(found, key=_ORDER.index)


def widened_bounds(stored: DataType, wanted: DataType, bounds: StoredBounds) -> StoredBounds:
    """Return bounds of a column of a file as bounds of the table's column."""
    nulls, low, high = bounds
    return nulls, widened_value(stored, wanted, low), widened_value(stored, wanted, high)


def widened_value(stored: DataType, wanted: DataType, value: StatValue | None) -> StatValue | None:
    """Return a bound in the units of `ColumnStats` for the table's type; None where unknown."""
    if stored == wanted or value is None:
        return value
    if readers(stored, wanted) != "any":
        return None
    if wanted.is_floating or wanted.is_decimal:
        return float(value)
    if wanted.kind == "timestamp_ntz":
        micros = int(value) * _DAY_MICROS
        return micros if abs(micros) < 1 << 63 else None
    return value


def widened_array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with another type; members of structs go by name, whatever its case.

    Raises:
        pa.ArrowInvalid: A value would change.
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == kind:
        return array
    if pa.types.is_struct(array.type) and pa.types.is_struct(kind):
        places = {array.type[i].name.lower(): i for i in range(array.type.num_fields)}
        members = [
            widened_array(array.field(places[field.name.lower()]), field.type)
            if field.name.lower() in places
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(array.type) and pa.types.is_map(kind):
        start, offsets = _offsets(array)
        keys = widened_array(array.keys.slice(start, offsets[-1].as_py()), kind.key_type)
        items = widened_array(array.items.slice(start, offsets[-1].as_py()), kind.item_type)
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=array.is_null())
    if _is_list(array.type) and pa.types.is_list(kind):
        start, offsets = _offsets(array)
        values = widened_array(array.values.slice(start, offsets[-1].as_py()), kind.value_type)
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=array.is_null())
    return array.cast(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _offsets(array: pa.Array) -> tuple[int, pa.Array]:
    """The first member of a list array's part, and the offsets counted from it."""
    start = array.offsets[0].as_py()
    return start, pc.subtract(array.offsets, array.offsets[0]).cast(pa.int32())
