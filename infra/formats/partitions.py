"""Columns of a table that come from Hive-style partition folders (`day=2024-01-31/`).

Their types are those that Spark infers (`PartitioningUtils.inferPartitionColumnValue`). Where
Spark's answer would be surprising or is of a type that is not supported here, the table is refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence

from stagecoach.infra.errors import StorageError
from stagecoach.infra.reading.column_summary import ColumnSummary
from stagecoach.infra.storage.table_files import FileEntry
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.text.time_zones import zone_info
from stagecoach.planner.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, DataType, Field

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows whose value is NULL."""
_MAX_FOLDER_BYTES = 250

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9])?")
# What else Java reads as a number, and Spark as a double, a decimal or a TIME.
_UNUSUAL = re.compile(
    r"\s*[+-]?(nan|infinity|[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?[fd]?|\.[0-9]+(e[+-]?[0-9]+)?[fd]?"
    r"|0x[0-9a-f.]+p[+-]?[0-9]+[fd]?)\s*|[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?( ?[ap]m)?",
    re.IGNORECASE,
)
_EPOCH = datetime.date(1970, 1, 1)
# How values of a declared type are written in folder names; any text is a string.
_WRITTEN: Mapping[DataType, re.Pattern[str] | None] = {
    STRING: None,
    INT: _WHOLE,
    BIGINT: _WHOLE,
    DOUBLE: re.compile(f"{_WHOLE.pattern}|{_FRACTION.pattern}"),
    DATE: _DATE,
    TIMESTAMP: re.compile(f"{_DATE.pattern}|{_TIMESTAMP.pattern}"),
}
_BITS = {INT: 31, BIGINT: 63}


def partition_fields(location: str, entries: Sequence[FileEntry]) -> tuple[Field, ...]:
    """The partition columns of a table with these files; none for a table without such folders.

    Args:
        location: The table's location, for messages.
        entries: All files of the table.

    Raises:
        CatalogError: Files lie at different depths, folders name different columns, or the values
            of a column are of a kind that is not supported.
    """
    names = _folder_names(location, entries)
    values = [partition_texts(entry) for entry in entries]
    columns = zip(*values, strict=True) if names else ()
    return tuple(
        Field(name, _common_kind(location, name, column))
        for name, column in zip(names, columns, strict=True)
    )


def declared_partitions(
    location: str, entries: Sequence[FileEntry], declared: tuple[Field, ...]
) -> tuple[Field, ...]:
    """The declared columns that come from the folders of these files, the last ones declared.

    Args:
        location: The table's location, for messages.
        entries: All files of the table.
        declared: All declared columns of the table.

    Raises:
        CatalogError: They do not stand last, or a folder's value is not of the declared type.
    """
    names = _folder_names(location, entries)
    columns = declared[len(declared) - len(names) :]
    if [name.lower() for name in names] != [column.name.lower() for column in columns]:
        raise CatalogError(
            f"{location}: the partition columns are ({', '.join(names)}); declare them last, in "
            f"that order (declared last: {', '.join(column.name for column in columns) or 'none'})"
        )
    for entry in entries:
        for column, text in zip(columns, partition_texts(entry), strict=True):
            _check_value(entry, column, text)
    return columns


def _check_value(entry: FileEntry, column: Field, text: str | None) -> None:
    if column.dtype not in _WRITTEN:
        raise CatalogError(
            f"{entry.uri}: partition column {column.name!r} is declared as {column.dtype}; declare "
            f"it as {', '.join(map(str, _WRITTEN))}"
        )
    pattern = _WRITTEN[column.dtype]
    fits = text is None or pattern is None or pattern.fullmatch(text) is not None
    if fits and text is not None and column.dtype in (INT, BIGINT):
        fits = -(1 << _BITS[column.dtype]) <= int(text) < 1 << _BITS[column.dtype]
    if fits and text is not None and column.dtype in (DATE, TIMESTAMP):
        fits = text[:4] != "0000" and _time_kind(text) != STRING
    if not fits:
        raise CatalogError(
            f"{entry.uri}: the value {text!r} of partition column {column.name!r} is not a valid "
            f"{column.dtype}; rename the folder, or declare another type"
        )


def _folder_names(location: str, entries: Sequence[FileEntry]) -> tuple[str, ...]:
    """The names of the partition columns, as the folders spell them."""
    names = [_names(location, entry) for entry in entries]
    for entry, other in zip(entries, names, strict=True):
        if other != names[0]:
            raise CatalogError(
                f"{location}: the partition columns of {entry.uri} are ({', '.join(other)}), those "
                f"of {entries[0].uri} are ({', '.join(names[0])}); all files must lie in folders "
                "of the same columns"
            )
    if len({name.lower() for name in names[0]}) < len(names[0]):
        raise CatalogError(f"{location}: a partition column stands twice in {entries[0].uri}")
    return names[0]


def partition_texts(entry: FileEntry) -> tuple[str | None, ...]:
    """The values in a file's folder names, as text; None for NULL."""
    texts = (_unescaped(folder.split("=", 1)[1]) for folder in entry.folders)
    return tuple(None if text == DEFAULT_PARTITION else text for text in texts)


def canonical_value(text: str | None, dtype: DataType, time_zone: str) -> str | None:
    """A partition value as text that every engine casts to `dtype` without a session's help.

    Args:
        text: The value in the folder's name, None for NULL.
        dtype: Type of the partition column.
        time_zone: Session time zone, which Spark reads timestamps in.
    """
    if text is None or dtype in (STRING, DATE):
        return text
    if dtype == DOUBLE:
        return repr(float(text))
    if dtype == TIMESTAMP:
        local = datetime.datetime.fromisoformat(text).replace(tzinfo=zone_info(time_zone))
        return local.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    return str(int(text))


def partition_summary(text: str | None, dtype: DataType, num_rows: int) -> ColumnSummary:
    """Statistics of a partition column over one file."""
    value: int | float | str | None = None
    if text is not None and dtype in (INT, BIGINT):
        value = int(text)
    elif text is not None and dtype == DOUBLE:
        value = float(text)
    elif text is not None and dtype == DATE:
        value = (datetime.date.fromisoformat(text) - _EPOCH).days
    elif text is not None and dtype == STRING:
        value = text
    return ColumnSummary(
        num_rows=num_rows,
        num_bytes=0,
        null_count=num_rows if text is None else 0,
        min_value=value,
        max_value=value,
        distinct_count=None if text is None else 1,
    )


def _names(location: str, entry: FileEntry) -> tuple[str, ...]:
    names = []
    for folder in entry.folders:
        name, found, value = folder.partition("=")
        if not found or not name or not value:
            raise CatalogError(
                f"{location}: folder {folder!r} beside partition folders is not <column>=<value>; "
                "move it away or rename it"
            )
        names.append(_unescaped(name))
    return tuple(names)


def _unescaped(text: str) -> str:
    """Spark's `unescapePathName`: each escape is one character."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _common_kind(location: str, name: str, texts: Sequence[str | None]) -> DataType:
    """The type that holds all values, as Spark resolves them."""
    kinds = {_kind(location, name, text) for text in set(texts) if text is not None}
    if not kinds:
        raise CatalogError(
            f"{location}: all values of partition column {name!r} are NULL, so it has no type"
        )
    if len(kinds) == 1:
        return kinds.pop()
    for allowed, result in (
        ({INT, BIGINT}, BIGINT),
        ({INT, DOUBLE}, DOUBLE),
        ({DATE, TIMESTAMP}, TIMESTAMP),
    ):
        if kinds <= allowed:
            return result
    return STRING


def _kind(location: str, name: str, text: str) -> DataType:
    if _WHOLE.fullmatch(text):
        if -(1 << 31) <= int(text) < 1 << 31:
            return INT
        if -(1 << 63) <= int(text) < 1 << 63:
            return BIGINT
    elif _FRACTION.fullmatch(text):
        return DOUBLE
    elif _DATE.fullmatch(text) or _TIMESTAMP.fullmatch(text):
        if text[:4] != "0000":  # a year that Python has not
            return _time_kind(text)
    elif not _UNUSUAL.fullmatch(text) and not any(c.isdigit() and not c.isascii() for c in text):
        return STRING
    raise CatalogError(
        f"{location}: value {text!r} of partition column {name!r} is a number or time of a kind "
        "that is not supported in folder names; write whole numbers, decimals such as 1.5, dates, "
        "timestamps or other text"
    )


def _time_kind(text: str) -> DataType:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return STRING  # a day that there is not
    return DATE if len(text) == 10 else TIMESTAMP


def partition_folder(column: str, value: str | None) -> str:
    """Return the name of a partition folder as Hive, Spark, DuckDB and pyarrow read it.

    Raises:
        StorageError: The value is empty or too long for the name of a folder.
    """
    text = DEFAULT_PARTITION if value is None else _escape_folder(value)
    folder = f"{_escape_folder(column)}={text}"
    if not text or value == DEFAULT_PARTITION:
        raise StorageError(
            f"partition column {column!r} has the value {value!r}, which the name of a folder "
            "cannot hold; leave the column out of partition_by, or give NULL instead"
        )
    if len(folder.encode()) > _MAX_FOLDER_BYTES:
        raise StorageError(
            f"partition column {column!r} has the value {value and value[:40]!r}…, too long for "
            f"the name of a folder ({_MAX_FOLDER_BYTES} bytes); leave it out of partition_by"
        )
    return folder


def _escape_folder(text: str) -> str:
    """Escape ASCII characters with a meaning in paths; Spark undoes one character at a time."""
    return re.sub(r"[^A-Za-z0-9_.+@\-\x80-\U0010ffff]", lambda m: f"%{ord(m.group()):02X}", text)
