"""Whether the columns of a result fit a published table, and which rows go where in it.

Pure, so that a project can be checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagecoach.infra.formats.publishing import PublishError, PublishTarget
from stagecoach.planner.types import DataType, Field

# It imports numpy and pyarrow.compute, which a check of columns need not wait for.
if TYPE_CHECKING:
    from stagecoach.infra.formats.published.row_keys import RowKeys

_FOLDER_KINDS = ("string", "tinyint", "smallint", "int", "bigint", "date")


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
    seen: dict[str, str] = {}
    for column in columns:
        if (other := seen.get(column.name.lower())) is not None:
            raise PublishError(
                f"the result has the columns '{other}' and '{column.name}', but those of a table "
                f"differ in more than case; give one an alias: {column.name} AS {column.name}_2"
            )
        seen[column.name.lower()] = column.name
        if reason := _unfit(column.dtype):
            raise PublishError(f"column '{column.name}' is {column.dtype}: {reason}")
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


def target_row_keys(columns: tuple[Field, ...], target: PublishTarget) -> RowKeys | None:
    """How rows tell their partition; None where all belong to the one key or there is none.

    Raises:
        PublishError: The target does not say what it must.
    """
    keys, name = target.partition_keys, target.partition_column
    if len(set(keys)) < len(keys):
        raise PublishError(f"table '{target.table}': a partition key is given twice")
    if target.mode == "replace_partition" and not keys:
        raise PublishError(
            f"table '{target.table}': mode replace_partition needs a partitioned run; "
            "start it for a partition, or use mode replace"
        )
    if name is None:
        if len(keys) > 1:
            raise PublishError(
                f"table '{target.table}': a run of {len(keys)} partitions needs a column that "
                "tells them apart (partitions.column); name it, or use one run per partition"
            )
        return None
    if not keys:
        return None
    from stagecoach.infra.formats.published.row_keys import RowKeys, window_bounds

    position = next((i for i, c in enumerate(columns) if c.name.lower() == name.lower()), None)
    if position is None:
        raise PublishError(
            f"table '{target.table}': partition column '{name}' is not a column of the result "
            f"({', '.join(c.name for c in columns)}); select it or correct the name"
        )
    dtype = columns[position].dtype
    if not target.windows:
        if dtype.kind not in _FOLDER_KINDS:
            raise PublishError(
                f"table '{target.table}': partition column '{name}' is {dtype}, whose text is no "
                "partition key; give the time windows of the partitions, or another column"
            )
        return RowKeys(column=position, name=name, keys=keys)
    if sorted(w.key for w in target.windows) != sorted(keys):
        raise PublishError(f"table '{target.table}': there must be one window per partition key")
    ordered, starts, ends = window_bounds(name, dtype, target.windows)
    return RowKeys(column=position, name=name, keys=ordered, starts=starts, ends=ends)


def _check_folders(columns: Sequence[Field], partition_by: Sequence[str]) -> None:
    for position, name in enumerate(partition_by):
        found = next((c for c in columns if c.name == name), None)
        if found is None:
            names = ", ".join(c.name for c in columns)
            raise PublishError(
                f"partition_by names '{name}', which is not a column of the result ({names})"
            )
        if name in partition_by[:position]:
            raise PublishError(f"partition_by names '{name}' twice; remove one")
        if found.dtype.kind not in _FOLDER_KINDS:
            raise PublishError(
                f"partition_by names '{name}', which is {found.dtype}; folders are named by text, "
                f"whole numbers or dates: cast it, such as CAST({name} AS DATE)"
            )
    if columns and len(partition_by) == len(columns):
        raise PublishError(
            "partition_by names all columns of the result; leave one that stays in the files"
        )


def _unfit(dtype: DataType) -> str | None:
    """Why a type cannot be in a table, with advice, or None."""
    if dtype.kind == "void":
        return "NULL without a type, which Parquet cannot hold; give it one: CAST(… AS STRING)"
    if dtype.kind.startswith("interval"):
        return (
            "an interval, which Parquet readers do not agree on; publish a number "
            "(extract(… FROM …)) or CAST(… AS STRING)"
        )
    if dtype.kind == "struct":
        names = [member.name.lower() for member in dtype.fields]
        if not names:
            return "a struct without members, which Parquet cannot hold; leave it out"
        if len(set(names)) < len(names):
            return "a struct with two members of the same name; rename one"
    return next((reason for f in dtype.fields if (reason := _unfit(f.dtype))), None)
