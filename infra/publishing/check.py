"""Whether results can be published, told before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.merge_keys import check_merge
from stagecoach.infra.formats.publishing import stored_columns
from stagecoach.infra.formats.registry import result_format
from stagecoach.planner.types import Field


def check_publishable(
    columns: Sequence[Field],
    partition_by: Sequence[str] = (),
    format_name: str = "",
    key: Sequence[str] = (),
    delete_column: str | None = None,
) -> None:
    """Look whether a result with these columns can be a table; needs no data.

    Args:
        columns: Of the result.
        partition_by: Those whose values tell files apart.
        format_name: The table's format; empty for the default.
        key: The columns by which it is merged; none for another mode.
        delete_column: The column that tells which rows a merge deletes, or None.

    Raises:
        PublishError: The format cannot hold a column, divide files by one, or merge by one.
    """
    if key and columns:
        check_merge(columns, key, delete_column)
    stored = stored_columns(columns, delete_column)
    result_format(format_name).check_columns(stored, partition_by)
