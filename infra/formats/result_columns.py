"""Whether the columns of a result can be those of a table, whatever the format of the table.

Pure, so that a project can be checked before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagecoach.infra.formats.publishing import PublishError
from stagecoach.planner.types import DataType, Field

TEXT_KINDS = ("string", "tinyint", "smallint", "int", "bigint", "date")
"""Types whose values are told by their text, in folder names and as partition keys."""


def check_columns(columns: Sequence[Field]) -> None:
    """Look whether names differ and types have a form in Parquet.

    Raises:
        PublishError: Two columns share a name, or a type has no Parquet form.
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


def partition_columns(
    columns: Sequence[Field], partition_by: Sequence[str]
) -> Iterator[tuple[str, Field]]:
    """Yield the columns whose values tell files apart, by their names in `partition_by`.

    Raises:
        PublishError: There is no such column, or a name is given twice.
    """
    for position, name in enumerate(partition_by):
        found = next((c for c in columns if c.name == name), None)
        if found is None:
            names = ", ".join(c.name for c in columns)
            raise PublishError(
                f"partition_by names '{name}', which is not a column of the result ({names})"
            )
        if name in partition_by[:position]:
            raise PublishError(f"partition_by names '{name}' twice; remove one")
        yield name, found


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
