"""The order of keys, and which of several rows with one key is the latest.

Values compare as in Spark: NULLs first and equal to each other, NaN above all and equal to itself,
-0.0 equal to 0.0, texts by their bytes. Rows that compare equal stay in their order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]


def sort_positions(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return the positions of the rows in ascending order of these columns.

    Args:
        rows: Rows in one piece or several.
        columns: Names of columns, the first one counts most.
    """
    if not columns:
        return pa.array(np.arange(rows.num_rows, dtype=np.uint64))
    keys: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(columns):
        column = rows.column(name)
        if pa.types.is_floating(column.type):
            # Arrow puts NaN beside NULL, on whatever side that is. A flag that is NULL for NULL
            # keeps them apart.
            keys[f"{number}n"] = pc.is_nan(column)
            column = _without_nan(column)
        elif pa.types.is_boolean(column.type):
            column = pc.cast(column, pa.int8())
        keys[f"{number}"] = column
    order = [(name, "ascending", "at_start") for name in keys]
    return pc.sort_indices(pa.table(keys).combine_chunks(), sort_keys=order)


def neighbours(rows: pa.Table, columns: Sequence[str]) -> tuple[Bools, Bools]:
    """Compare each row but the first with the one before it.

    Args:
        rows: At least one row.
        columns: Names of columns, the first one counts most.

    Returns:
        Whether it is above the one before it, and whether they are equal.
    """
    count = max(rows.num_rows - 1, 0)
    above, equal = np.zeros(count, dtype=bool), np.ones(count, dtype=bool)
    for name in columns:
        column = rows.column(name).combine_chunks()
        before, after = column.slice(0, count), column.slice(1)
        above |= equal & _above(before, after)
        equal &= _equal(before, after)
    return above, equal


def has_duplicates(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether two rows have equal values of all these columns."""
    if rows.num_rows < 2:
        return False
    above, equal = neighbours(rows, columns)
    if (above | equal).all():
        return bool(equal.any())
    normal = {
        f"{i}": _canonical(rows.column(name).combine_chunks()) for i, name in enumerate(columns)
    }
    groups = pa.table(normal).group_by(list(normal), use_threads=False).aggregate([])
    return bool(groups.num_rows < rows.num_rows)


def latest_rows(
    rows: pa.Table, key: Sequence[str], version: str | None
) -> tuple[pa.Table, pa.Array]:
    """Return the latest row of each key, sorted by the key.

    Args:
        rows: Rows, the older ones first.
        key: Columns of the key.
        version: Column that counts more than the place of a row; NULL is lowest.

    Returns:
        The rows, and the positions that they had.
    """
    if not rows.num_rows:
        return rows, pa.array([], pa.uint64())
    by = [*key, *([version] if version is not None else [])]
    order = sort_positions(rows, by)
    if key:
        _, equal = neighbours(rows.select(list(key)).take(order), key)
        positions = order.filter(pa.array(np.append(~equal, True)))
    else:
        positions = order[-1:]  # all keys are the same
    return rows.take(positions), positions


def _above(before: pa.Array, after: pa.Array) -> Bools:
    """Whether the later value is greater; NULL is the least value, NaN the greatest."""
    found = _bools(pc.less(before, after))
    if pa.types.is_floating(before.type):
        found |= _bools(pc.and_kleene(pc.is_nan(after), pc.invert(pc.is_nan(before))))
    return found | _bools(pc.and_(pc.is_null(before), pc.is_valid(after)))


def _equal(before: pa.Array, after: pa.Array) -> Bools:
    found = _bools(pc.equal(before, after))
    if pa.types.is_floating(before.type):
        found |= _bools(pc.and_kleene(pc.is_nan(before), pc.is_nan(after)))
    return found | _bools(pc.and_(pc.is_null(before), pc.is_null(after)))


def _bools(array: pa.Array) -> Bools:
    made: Bools = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return made


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_nan(column), pa.scalar(0, column.type), column)


def _canonical(column: pa.Array) -> pa.Array:
    """Equal values as equal bits: one zero, one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    zero = pa.scalar(0, column.type)
    nan = pa.scalar(float("nan"), column.type)
    column = pc.if_else(pc.equal(column, zero), zero, column)
    return pc.if_else(pc.is_nan(column), nan, column)
