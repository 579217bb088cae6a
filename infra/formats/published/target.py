"""Whether the columns of a result fit a published table.

Pure, so that a project can be checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.infra.formats.result_columns import TEXT_KINDS, check_columns, partition_columns
from stagecoach.planner.types import Field


def table_columns(columns: Sequence[Field], partition_by: Sequence[str]) -> tuple[Field, ...]:
    """The columns of a table as readers see them: those of the files, then those of the folders."""
    folders = {name.lower(): name for name in partition_by}
    by_name = {column.name.lower(): column for column in columns}
    inner = [column for column in columns if column.name.lower() not in folders]
    return (*inner, *(by_name[name] for name in folders))


def check_publishable(columns: Sequence[Field], partition_by: Sequence[str] = ()) -> None:
    """Look whether a result with these columns can be a table; needs no data.

    Raises:
        PublishError: Two columns share a name, a type has no Parquet form, or a column cannot
            become folders.
    """
    check_columns(columns)
    _check_folders(columns, partition_by)


def checked_columns(columns: Sequence[Field], target: PublishTarget) -> tuple[Field, ...]:
    """The columns of a result, which fit the target.

    Raises:
        PublishError: They do not.
    """
    try:
        if not columns:
            raise PublishError("the result has no columns; select at least one")
        check_publishable(columns, target.partition_by)
    except PublishError as error:
        raise PublishError(f"table '{target.table}': {error}") from None
    return tuple(columns)


def _check_folders(columns: Sequence[Field], partition_by: Sequence[str]) -> None:
    for name, found in partition_columns(columns, partition_by):
        if found.dtype.kind not in TEXT_KINDS:
            raise PublishError(
                f"partition_by names '{name}', which is {found.dtype}; folders are named by text, "
                f"whole numbers or dates: cast it, such as CAST({name} AS DATE)"
            )
    if columns and len(partition_by) == len(columns):
        raise PublishError(
            "partition_by names all columns of the result; leave one that stays in the files"
        )
