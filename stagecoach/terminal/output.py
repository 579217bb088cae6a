"""Prints results as a table, CSV or JSON lines.

Column names and types are Spark's, duplicate and generated names included.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Format = Literal["table", "csv", "json"]
FORMATS: tuple[Format, ...] = ("table", "csv", "json")
DEFAULT_TABLE_ROWS = 100
_MAX_CELL = 60


def render_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    output_format: Format,
    *,
    limit: int | None = None,
    num_rows: int | None = None,
    time_zone: str = "UTC",
) -> Iterator[str]:
    """Yield the lines of a result.

    Args:
        schema: Its columns.
        batches: Its rows.
        output_format: `table` is drawn whole, the others are streamed.
        limit: Most rows shown; None for all (of a table: `DEFAULT_TABLE_ROWS`).
        num_rows: Rows of the result, for the note below a table.
        time_zone: Zone that timestamps are shown in: the session's, as Spark does.
    """
    batches = _in_zone(batches, time_zone)
    if output_format == "table":
        shown = DEFAULT_TABLE_ROWS if limit is None else limit
        yield from _table(schema, list(take_rows(batches, shown)), num_rows)
    elif output_format == "csv":
        yield _csv_line(list(schema.names))
        for row in take_rows(batches, limit):
            yield _csv_line([None if v is None else to_text(v) for v in row])
    else:
        names = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        for row in take_rows(batches, limit):
            pairs = zip(names, row, strict=True)
            # Built by hand: names may repeat, and decimals keep all of their digits.
            yield "{" + ", ".join(f"{name}: {_json_text(value)}" for name, value in pairs) + "}"


def _in_zone(batches: Iterable[pa.RecordBatch], zone: str) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        columns = [
            column.cast(pa.timestamp("us", tz=zone))
            if pa.types.is_timestamp(column.type) and column.type.tz
            else column
            for column in batch.columns
        ]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def take_rows(
    batches: Iterable[pa.RecordBatch], limit: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of Python values, at most `limit`."""
    left = math.inf if limit is None else limit
    if left <= 0:
        return
    for batch in batches:
        part = batch if batch.num_rows <= left else batch.slice(0, int(left))
        yield from zip(*(column.to_pylist() for column in part.columns), strict=True)
        left -= part.num_rows
        if left <= 0:
            return


def shown_rows(table: pa.Table, time_zone: str) -> list[tuple[Any, ...]]:
    """The rows of a small table, timestamps in a zone; values that Python cannot hold as texts."""
    import pyarrow as pa

    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type) and column.type.tz:
            column = column.cast(pa.timestamp("us", tz=time_zone))
        try:
            columns.append(column.to_pylist())
        except (ValueError, OverflowError):  # Python's years end with 9999
            columns.append(column.cast(pa.string()).to_pylist())
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def to_text(value: Any) -> str:
    """A value as Spark casts it to a string."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return _float_text(value)
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.decode(errors="replace")
        case datetime.datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            return text.rstrip("0") if "." in text else text
        case datetime.date():
            return value.isoformat()
        case dict():
            return "{" + ", ".join(to_text(v) for v in value.values()) + "}"
        case list() if value and all(isinstance(v, tuple) for v in value):
            return "{" + ", ".join(f"{to_text(k)} -> {to_text(v)}" for k, v in value) + "}"
        case list():
            return "[" + ", ".join(to_text(v) for v in value) + "]"
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # Java writes 1.0E7 where Python writes 10000000.0.
    if value and not 1e-3 <= abs(value) < 1e7:
        digits, _, exponent = f"{Decimal(repr(value)):E}".partition("E")
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
    return repr(value) if "e" not in repr(value) else format(Decimal(repr(value)), "f")


def _csv_line(values: Sequence[str | None]) -> str:
    """One line as RFC 4180 has it; NULL is nothing at all, an empty text is `""`."""
    return ",".join("" if value is None else _csv_cell(value) for value in values)


def _csv_cell(text: str) -> str:
    if text and not any(c in text for c in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json_text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return json.dumps(to_text(value))
        case bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return json.dumps(base64.b64encode(value).decode())
        case datetime.datetime() if value.tzinfo is not None:
            return json.dumps(value.isoformat())
        case dict():
            members = (f"{json.dumps(k)}: {_json_text(v)}" for k, v in value.items())
            return "{" + ", ".join(members) + "}"
        case list() if value and all(isinstance(v, tuple) for v in value):
            members = (f"{json.dumps(to_text(k))}: {_json_text(v)}" for k, v in value)
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(_json_text(v) for v in value) + "]"
    return json.dumps(to_text(value), ensure_ascii=False)


def _table(
    schema: pa.Schema, rows: Sequence[tuple[Any, ...]], num_rows: int | None
) -> Iterator[str]:
    import pyarrow as pa

    header = [printable(name) for name in schema.names]
    cells = [[_clip(printable(to_text(value))) for value in row] for row in rows]
    right = [pa.types.is_primitive(f.type) and not pa.types.is_temporal(f.type) for f in schema]
    right = [r or pa.types.is_decimal(f.type) for r, f in zip(right, schema, strict=True)]
    widths = [
        max([display_width(h), *(display_width(r[i]) for r in cells)]) for i, h in enumerate(header)
    ]
    rule = "─┼─".join("─" * width for width in widths)
    yield " │ ".join(_pad(h, w, False) for h, w in zip(header, widths, strict=True)).rstrip()
    yield rule
    for row in cells:
        line = (_pad(c, w, r) for c, w, r in zip(row, widths, right, strict=True))
        yield " │ ".join(line).rstrip()
    total = len(rows) if num_rows is None else num_rows
    noun = "row" if total == 1 else "rows"
    if total > len(rows):
        yield f"({total:,} {noun}, the first {len(rows):,} shown; --limit N shows more)"
    else:
        yield f"({total:,} {noun})"


def printable(text: str) -> str:
    """Text without characters that would move the cursor or change the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _clip(text: str) -> str:
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space
