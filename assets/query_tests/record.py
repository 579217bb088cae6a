"""Writes a test from rows that are there: given rows, what the query makes of them, as YAML.

Equal values stay equal where they are masked, in whatever table, so that rows still join and group.
"""

import datetime
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.types import DataType, Field

_DAY = datetime.date(2000, 1, 1)
_MASKED = "masked"


class RecordError(StagecoachError):
    """Rows cannot be written as a test."""


class Mask:
    """Replaces the values of some columns; NULL stays NULL.

    Args:
        columns: Names of columns, `column` for those of all tables or `table.column`.
    """

    def __init__(self, columns: Collection[str]) -> None:
        self._columns = {name.lower() for name in columns}
        self._used: set[str] = set()
        self._numbers: dict[object, int] = {}

    def applied(self, table: str, fields: Sequence[Field], rows: pa.Table) -> pa.Table:
        """The rows with masked values.

        Args:
            table: Name of the table.
            fields: Its columns.
            rows: Its rows.

        Raises:
            RecordError: A column to mask is of a type for which there is no other value.
        """
        for position, field in enumerate(fields):
            names = {field.name.lower(), f"{table}.{field.name}".lower()} & self._columns
            if not names:
                continue
            self._used |= names
            values = [
                None if value is None else self._value(value, field)
                for value in rows.column(position).to_pylist()
            ]
            column = rows.schema.field(position)
            rows = rows.set_column(position, column, pa.array(values, column.type))
        return rows

    def check_used(self) -> None:
        """Refuse columns that no table has: their values would have been written.

        Raises:
            RecordError: Naming the first.
        """
        if unused := sorted(self._columns - self._used):
            raise RecordError(
                f"there is no column '{unused[0]}' to mask among those that the query reads"
            )

    def _value(self, value: Any, field: Field) -> Any:
        # 1 and 1.0 are one value: they may be joined. A float NaN equals itself by its text.
        key = str(value) if isinstance(value, float) else value
        kind = field.dtype.kind
        if kind not in ("string", "date", "binary") and not field.dtype.is_numeric:
            if kind in ("timestamp", "timestamp_ntz"):
                number = self._number(key)
                start = datetime.datetime.combine(_DAY, datetime.time(), value.tzinfo)
                return start + datetime.timedelta(days=number)
            raise RecordError(
                f"column '{field.name}' of type {field.dtype} cannot be masked; choose another"
            )
        number = self._number(key)
        match kind:
            case "string":
                return f"{_MASKED}_{number}"
            case "binary":
                return f"{_MASKED}_{number}".encode()
            case "date":
                return _DAY + datetime.timedelta(days=number)
            case "decimal":
                return Decimal(number)
        if kind == "tinyint" and number > 127:
            raise RecordError(f"column '{field.name}' has too many values for a masked tinyint")
        return float(number) if field.dtype.is_floating else number

    def _number(self, value: object) -> int:
        return self._numbers.setdefault(value, len(self._numbers) + 1)


def recorded_text(
    *,
    name: str,
    tables: Mapping[str, tuple[Sequence[Field], pa.Table]],
    parameters: Mapping[str, str],
    now: datetime.datetime | None,
    result: tuple[Sequence[Field], pa.Table],
) -> str:
    """The YAML of a file with one test.

    Args:
        name: Name of the test.
        tables: Columns and rows by name of the table.
        parameters: Values by name.
        now: The clock; None for a query that does not read it.
        result: Columns and rows of the result.

    Raises:
        RecordError: A column has a type that YAML cannot hold.
    """
    lines: list[str] = []
    if now is not None:
        lines.append(f"now: {now:%Y-%m-%d %H:%M:%S}")
    lines.append("given:" if tables else "given: {}")
    for table, (fields, rows) in tables.items():
        lines += [f"  {_key(table)}:", "    columns:"]
        lines += [f"      {_key(f.name)}: {json.dumps(str(f.dtype))}" for f in fields]
        lines += ["    rows:" if rows.num_rows else "    rows: []"]
        lines += [f"      - {row}" for row in _rows(fields, rows, keep_nulls=False)]
    lines += ["tests:", f"  - name: {json.dumps(name, ensure_ascii=False)}"]
    if parameters:
        lines.append("    parameters:")
        lines += [
            f"      {_key(key)}: {json.dumps(text, ensure_ascii=False)}"
            for key, text in parameters.items()
        ]
    fields, rows = result
    lines.append("    expect:" if rows.num_rows else "    expect: []")
    lines += [f"      - {row}" for row in _rows(fields, rows, keep_nulls=True)]
    return "\n".join(lines) + "\n"


def _rows(fields: Sequence[Field], rows: pa.Table, *, keep_nulls: bool) -> Iterator[str]:
    columns = [rows.column(i).to_pylist() for i in range(len(fields))]
    for row in zip(*columns, strict=True):
        cells = [
            f"{_key(f.name)}: {_cell(value, f.dtype, f.name)}"
            for f, value in zip(fields, row, strict=True)
            if keep_nulls or value is not None
        ]
        yield "{" + ", ".join(cells) + "}"


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


def _cell(value: Any, dtype: DataType, column: str) -> str:
    if value is None:
        return "null"
    match dtype.kind:
        case "boolean":
            return "true" if value else "false"
        case "string":
            return _quoted(value)
        case "binary":
            return f'"0x{value.hex()}"'
        case "decimal":
            return format(value, "f")
        case "date":
            return f"{value:%Y-%m-%d}".rjust(10, "0")
        case "timestamp":
            text = value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(" ")
            return f'"{text}+00:00"'
        case "timestamp_ntz":
            return f'"{value.isoformat(" ")}"'
        case "array":
            inner = dtype.fields[0].dtype
            return "[" + ", ".join(_cell(item, inner, column) for item in value) + "]"
        case "map":
            key, item = (field.dtype for field in dtype.fields)
            pairs = (f"{_map_key(k, key, column)}: {_cell(v, item, column)}" for k, v in value)
            return "{" + ", ".join(pairs) + "}"
        case "struct":
            members = (
                f"{_key(f.name)}: {_cell(value[f.name], f.dtype, column)}" for f in dtype.fields
            )
            return "{" + ", ".join(members) + "}"
    if dtype.is_floating or dtype.is_integral:
        return str(value) if value == value and abs(value) != float("inf") else f'"{value}"'
    raise RecordError(f"column '{column}' has the type {dtype}, which YAML cannot hold")


def _map_key(value: Any, dtype: DataType, column: str) -> str:
    text = _cell(value, dtype, column)
    if not dtype.is_atomic:
        raise RecordError(f"column '{column}' has keys of type {dtype}, which YAML cannot hold")
    return text


def _quoted(text: str) -> str:
    """A text in double quotes; JSON's escapes are YAML's, but for what YAML does not print."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in quoted)
