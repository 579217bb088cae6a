"""The columns of a table whose files have different ones, as Spark's option `mergeSchema` has it.

A table has every column that one of its files has, in the order in which they come up, the files
sorted by their paths. Types must be equal, but for decimals with the same scale (the larger
precision) and structs (every member of one of them), at any depth. Names are equal if they differ
in case only; the first spelling counts.

Source: Spark's `StructType.merge`, `SchemaMergeUtils.mergeSchemasInParallel`.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.planner import types
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.types import DataType, Field


class MergeError(Exception):
    """Two types cannot be merged.

    Args:
        path: Names of the column and of the members that lead to it.
        left: The type of the former.
        right: The type of the latter.
    """

    def __init__(self, path: tuple[str, ...], left: DataType, right: DataType) -> None:
        super().__init__(f"{'.'.join(path)}: {left} and {right}")
        self.path = path
        self.left = left
        self.right = right


def check_names(
    fields: Sequence[Field], path: tuple[str, ...] = (), *, with_members: bool = True
) -> None:
    """Look whether columns of a file have different names, whatever their case.

    Args:
        fields: The columns, or members of one.
        path: Names of the column and of the members that lead to them.
        with_members: Whether members of structs count, which matter to Spark only where it takes
            a table's columns from files.

    Raises:
        CatalogError: Two have the same name.
    """
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.get(field.name.lower())
        if other is not None:
            names = [".".join((*path, name)) for name in (other, field.name)]
            raise CatalogError(
                f"{'members' if path else 'columns'} {names[0]!r} and {names[1]!r} have the same "
                "name (case does not matter); rename one"
            )
        seen[field.name.lower()] = field.name
        if with_members:
            check_names(field.dtype.fields, (*path, field.name))


def merge_fields(
    left: Sequence[Field], right: Sequence[Field], path: tuple[str, ...] = ()
) -> tuple[Field, ...]:
    """Return the columns, or members of a struct, that are in one of both.

    Raises:
        MergeError: A column has types that do not fit.
    """
    theirs = {field.name.lower(): field for field in right}
    merged = []
    for field in left:
        other = theirs.pop(field.name.lower(), field)
        dtype = merge_types(field.dtype, other.dtype, (*path, field.name))
        merged.append(Field(field.name, dtype))
    return (*merged, *theirs.values())


def merge_types(left: DataType, right: DataType, path: tuple[str, ...]) -> DataType:
    """Return the type of a column that has one type in some files and another in others.

    Raises:
        MergeError: There is none.
    """
    if left == right:
        return left
    match left.kind, right.kind:
        case "struct", "struct":
            return types.struct_of(merge_fields(left.fields, right.fields, path))
        case "array", "array":
            item = merge_types(left.fields[0].dtype, right.fields[0].dtype, (*path, "element"))
            return types.array_of(item)
        case "map", "map":
            key = merge_types(left.fields[0].dtype, right.fields[0].dtype, (*path, "key"))
            value = merge_types(left.fields[1].dtype, right.fields[1].dtype, (*path, "value"))
            return types.map_of(key, value)
        case "decimal", "decimal" if left.scale == right.scale:
            return types.decimal(max(left.precision, right.precision), left.scale)
    raise MergeError(path, left, right)
