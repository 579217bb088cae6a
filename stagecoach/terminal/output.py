"""Prints results as tables, blocks, Markdown, CSV or JSON lines.

Column names and types are Spark's, duplicate and generated names included.
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from stagecoach.terminal.html_tables import draw_html
from stagecoach.terminal.text_tables import (
    Heading,
    clip,
    draw_blocks,
    draw_markdown,
    draw_table,
    printable,
)
from stagecoach.terminal.value_texts import Entries, to_text

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.planner.types import Field

Format = Literal["table", "vertical", "markdown", "csv", "json"]
FORMATS: tuple[Format, ...] = ("table", "vertical", "markdown", "csv", "json")
DEFAULT_TABLE_ROWS = 100


def render_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    output_format: Format,
    *,
    columns: Sequence[Field] | None = None,
    limit: int | None = None,
    num_rows: int | None = None,
    time_zone: str = "UTC",
    width: int | None = None,
) -> Iterator[str]:
    """Yield the lines of a result.

    Args:
        schema: Its columns.
        batches: Its rows.
        output_format: `table` is drawn whole, the others are streamed.
        columns: The Spark types of its columns, by which intervals are shown as Spark does.
        limit: Most rows shown; None for all (of `table` and `vertical`: `DEFAULT_TABLE_ROWS`).
        num_rows: Rows of the result, for the note below a table.
        time_zone: Zone that timestamps are shown in: the session's, as Spark does.
        width: Columns of the terminal that a table is to fit; None for any width.
    """
    for_people = output_format in ("table", "vertical")
    shown = DEFAULT_TABLE_ROWS if limit is None and for_people else limit
    rows = take_rows(batches, shown, columns=columns, time_zone=time_zone, shown=True)
    if output_format == "csv":
        yield _csv_line(list(schema.names))
        for row in rows:
            yield _csv_line([None if v is None else to_text(v) for v in row])
        return
    if output_format == "json":
        names = [json.dumps(name, ensure_ascii=False) for name in schema.names]
        for row in rows:
            pairs = zip(names, row, strict=True)
            # Built by hand: names may repeat, and decimals keep all of their digits.
            yield "{" + ", ".join(f"{name}: {_json_text(value)}" for name, value in pairs) + "}"
        return
    headings = [Heading(printable(f.name), _is_number(f.type)) for f in schema]
    counted = _Counted([printable(to_text(value)) for value in row] for row in rows)
    left_out = 0
    if output_format == "markdown":
        yield from draw_markdown(headings, counted)
        return
    if output_format == "vertical":
        yield from draw_blocks(headings, counted)
    else:
        lines, left_out = draw_table(headings, list(counted), width)
        yield from lines
    yield _note(counted.count, num_rows, left_out, len(headings))


def html_rows(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    columns: Sequence[Field],
    limit: int,
    num_rows: int,
    time_zone: str,
) -> str:
    """The first rows of a result as an HTML table; see `render_rows`."""
    rows = take_rows(batches, limit, columns=columns, time_zone=time_zone, shown=True)
    texts = [[clip(printable(to_text(value))) for value in row] for row in rows]
    headings = [Heading(printable(f.name), _is_number(f.type)) for f in schema]
    note = f"{num_rows:,} row{'' if num_rows == 1 else 's'}"
    if num_rows > len(texts):
        note += f", the first {len(texts):,} shown"
    kinds = [str(column.dtype) for column in columns]
    return "\n".join(draw_html(headings, kinds, texts, note))


class _Counted:
    """Rows, with the number of those that were taken."""

    def __init__(self, rows: Iterable[list[str]]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[list[str]]:
        for row in self._rows:
            self.count += 1
            yield row


def _note(shown: int, num_rows: int | None, left_out: int, num_columns: int) -> str:
    total = shown if num_rows is None else num_rows
    parts = [f"{total:,} row{'' if total == 1 else 's'}"]
    if total > shown:
        parts.append(f"the first {shown:,} shown; --limit N shows more")
    if left_out:
        found = f"{num_columns - left_out} of {num_columns} columns fit"
        parts.append(f"{found}; --format vertical shows all")
    return f"({', '.join(parts)})"


def _is_number(dtype: pa.DataType) -> bool:
    import pyarrow as pa

    is_plain = pa.types.is_primitive(dtype) and not pa.types.is_temporal(dtype)
    return is_plain or pa.types.is_decimal(dtype)


def take_rows(
    batches: Iterable[pa.RecordBatch],
    limit: int | None = None,
    *,
    columns: Sequence[Field] | None = None,
    time_zone: str | None = None,
    shown: bool = False,
) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of Python values; see `python_values`.

    Args:
        batches: The rows.
        limit: Most rows; None for all.
        columns: Spark types of the columns; intervals become texts by them.
        time_zone: Zone of timestamps; None to leave them as they are.
        shown: Whether the values become texts.
    """
    from stagecoach.planner.text.interval_texts import has_day_time, with_interval_texts
    from stagecoach.terminal.shown_values import python_values, with_entries

    left = math.inf if limit is None else limit
    if left <= 0:
        return
    types = {i: field.dtype for i, field in enumerate(columns or ()) if has_day_time(field.dtype)}
    for batch in batches:
        part = batch if batch.num_rows <= left else batch.slice(0, int(left))
        values = [python_values(column, time_zone, shown=shown) for column in part.columns]
        for i, dtype in types.items():
            values[i] = [with_interval_texts(value, dtype) for value in values[i]]
        if shown:
            values = [
                with_entries(v, column.type) for v, column in zip(values, part.columns, strict=True)
            ]
        yield from zip(*values, strict=True)
        left -= part.num_rows
        if left <= 0:
            return


def shown_rows(table: pa.Table, time_zone: str) -> list[tuple[Any, ...]]:
    """The rows of a small table, as `take_rows` gives those that are shown."""
    from stagecoach.terminal.shown_values import python_values, with_entries

    columns = [
        with_entries(python_values(column, time_zone, shown=True), column.type)
        for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


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
        case Entries():
            members = (f"{json.dumps(to_text(k))}: {_json_text(v)}" for k, v in value)
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(_json_text(v) for v in value) + "]"
    return json.dumps(to_text(value), ensure_ascii=False)
