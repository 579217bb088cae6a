"""Whether a result can be merged into a table: its key, and the column that removes keys.

Pure, so that a project can be checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.planner.types import Field

_KEY_KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal",
    "string", "binary", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip


def check_merge(columns: Sequence[Field], key: Sequence[str], delete_column: str | None) -> None:
    """Look whether a result with these columns can be merged; needs no data.

    Args:
        columns: Of the result.
        key: The columns by which rows are found.
        delete_column: The column that is true where the key is removed, or None.

    Raises:
        PublishError: It cannot.
    """
    if not key:
        raise PublishError("mode merge needs a key: name the columns by which rows are found")
    if delete_column is not None:
        found = _column(columns, "delete_column", delete_column)
        if found.dtype.kind != "boolean":
            raise PublishError(
                f"delete_column names '{found.name}', which is {found.dtype}; it must be boolean, "
                f"such as {found.name} = 'D' AS is_deleted"
            )
    for name in key:
        found = _column(columns, "key", name)
        if found.dtype.kind not in _KEY_KINDS:
            raise PublishError(
                f"key names '{found.name}', which is {found.dtype}; a key has simple types: use "
                "another column"
            )
        if delete_column is not None and name.lower() == delete_column.lower():
            raise PublishError(
                f"'{name}' is delete_column and part of the key; the table does not have it: "
                "leave it out of the key"
            )
    for column in columns:
        if column.dtype.is_only_sparks:
            raise PublishError(
                f"column '{column.name}' is {column.dtype}, which only Spark reads, and a merge "
                f"reads files of the table; cast it, such as CAST({column.name} AS STRING)"
            )


def key_positions(columns: Sequence[Field], key: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the columns of a key, which `check_merge` has accepted."""
    places = {column.name.lower(): place for place, column in enumerate(columns)}
    return tuple(places[name.lower()] for name in key)


def delete_position(columns: Sequence[Field], target: PublishTarget) -> int | None:
    """Return the place of the column of the result that removes keys, or None."""
    if target.delete_column is None:
        return None
    return key_positions(columns, [target.delete_column])[0]


def _column(columns: Sequence[Field], setting: str, name: str) -> Field:
    found = [column for column in columns if column.name.lower() == name.lower()]
    if not found:
        names = ", ".join(column.name for column in columns)
        raise PublishError(
            f"{setting} names '{name}', which is not a column of the result ({names})"
        )
    return found[0]
