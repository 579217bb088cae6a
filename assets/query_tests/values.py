"""Values as people write them in YAML and CSV → Arrow columns of a Spark type."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from stagecoach.planner.plan.literal_text import parse_literal
from stagecoach.planner.types import DataType, to_arrow

_HEX = re.compile(r"0[xX]([0-9a-fA-F]{2})*")
_ADVICE = {
    "date": "write it as 2024-01-31",
    "timestamp": "write it as 2024-01-31 12:00:00",
    "timestamp_ntz": "write it as 2024-01-31 12:00:00",
    "boolean": "write true or false",
    "binary": "write bytes as 0x and hexadecimal digits",
}


class CellError(ValueError):
    """A written value does not fit its column.

    Args:
        row: 0-based number of the row.
        problem: What is wrong, and what to do.
    """

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row
        self.problem = problem


def column_of(cells: Sequence[Any], dtype: DataType, time_zone: str) -> pa.Array:
    """A column of written values.

    Args:
        cells: The values: texts, None, lists and mappings.
        dtype: Type of the column.
        time_zone: Zone of timestamps that name none.

    Raises:
        CellError: A value is not of the type, or would be rounded.
    """
    values: list[Any] = []
    for row, cell in enumerate(cells):
        try:
            values.append(_value(cell, dtype, time_zone))
        except ValueError as error:
            raise CellError(row, str(error)) from error
    return pa.array(values, to_arrow(dtype))


def _value(cell: Any, dtype: DataType, time_zone: str) -> Any:
    if cell is None:
        return None
    match dtype.kind:
        case "array":
            items = _of_kind(cell, list, dtype, "a list")
            return [_value(item, dtype.fields[0].dtype, time_zone) for item in items]
        case "map":
            pairs = _of_kind(cell, dict, dtype, "a mapping").items()
            key, value = (field.dtype for field in dtype.fields)
            return [(_value(k, key, time_zone), _value(v, value, time_zone)) for k, v in pairs]
        case "struct":
            members = _of_kind(cell, dict, dtype, "a mapping")
            known = {field.name for field in dtype.fields}
            if unknown := [name for name in members if name not in known]:
                raise ValueError(f"'{unknown[0]}' is no member of {dtype}")
            return {f.name: _value(members.get(f.name), f.dtype, time_zone) for f in dtype.fields}
    if not isinstance(cell, str):
        raise ValueError(f"a value of type {dtype} cannot be {_shown(cell)}; write a single value")
    return _scalar(cell, dtype, time_zone)


def _of_kind(cell: Any, kind: type, dtype: DataType, words: str) -> Any:
    if not isinstance(cell, kind):
        raise ValueError(f"a value of type {dtype} must be {words}, not {_shown(cell)}")
    return cell


def _scalar(text: str, dtype: DataType, time_zone: str) -> Any:
    if dtype.kind == "binary":
        if not _HEX.fullmatch(text):
            raise ValueError(f"'{text}' is not a valid binary; {_ADVICE['binary']}")
        return bytes.fromhex(text[2:])
    if dtype.is_only_sparks or dtype.kind in ("void", "interval"):
        raise ValueError(f"a value of type {dtype} cannot be written; give it by a Parquet file")
    if dtype.is_floating:
        text = {".nan": "NaN", ".inf": "Infinity", "-.inf": "-Infinity"}.get(text.lower(), text)
    try:
        value = parse_literal(text, dtype, time_zone).value
    except ValueError as error:
        advice = _ADVICE.get(dtype.kind)
        raise ValueError(f"{error}; {advice}" if advice else str(error)) from error
    if dtype.is_decimal:
        return Decimal(str(value))
    if dtype.kind == "date":
        return int(np.datetime64(str(value), "D").astype(np.int64))
    if dtype.is_datetime:
        return int(np.datetime64(str(value).replace(" ", "T"), "us").astype(np.int64))
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
