"""Whether results can be published, told before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.registry import result_format
from stagecoach.planner.types import Field


def check_publishable(
    columns: Sequence[Field], partition_by: Sequence[str] = (), format_name: str = ""
) -> None:
    """Look whether a result with these columns can be a table; needs no data.

    Args:
        columns: Of the result.
        partition_by: Those whose values tell files apart.
        format_name: The table's format; empty for the default.

    Raises:
        PublishError: The format cannot hold a column, or divide files by one.
    """
    result_format(format_name).check_columns(columns, partition_by)
