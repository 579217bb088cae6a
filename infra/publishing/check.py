"""Whether results can be published, told before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.registry import result_format
from stagecoach.planner.types import Field


def check_publishable(columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
    """Look whether a result with these columns can be a table; needs no data.

    Raises:
        PublishError: The format of results cannot hold a column, or a column cannot become folders.
    """
    result_format().check_columns(columns, partition_by)
