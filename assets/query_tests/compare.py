"""How two results differ, by the equality of Spark's values.

NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, a map equals one with the same entries. Rows are
a bag unless the query orders them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import pyarrow as pa

_NAN = "NaN"
Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How a result differs from what was expected.

    Args:
        expected: Number of rows.
        found: Number of rows.
        pairs: Numbers of the rows that differ, of the expected and of the found one: similar ones
            stand together; None where there is none. Each row is in the list once.
        reordered: Whether the same rows were found in another order.
    """

    expected: int
    found: int
    pairs: tuple[tuple[int | None, int | None], ...]
    reordered: bool = False


def difference(
    expected: pa.Table, found: pa.Table, *, ordered: bool, tolerance: float = 0.0
) -> Difference | None:
    """How rows differ; None where they are equal.

    Args:
        expected: Rows.
        found: Rows of the same types.
        ordered: Whether their order counts.
        tolerance: Relative difference up to which floating-point values are equal.
    """
    left, right = canonical_rows(expected), canonical_rows(found)
    if ordered:
        missing, extra = _unmatched_in_order(left, right, tolerance)
    else:
        missing, extra = _unmatched(left, right, tolerance)
    if not missing and not extra:
        return None
    reordered = ordered and _unmatched(left, right, tolerance) == ([], [])
    pairs = _paired(left, right, missing, extra, tolerance)
    return Difference(expected=len(left), found=len(right), pairs=tuple(pairs), reordered=reordered)


def same_value(left: Any, right: Any, tolerance: float = 0.0) -> bool:
    """Whether two canonical values are equal."""
    if left == right:
        return True
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return all(same_value(a, b, tolerance) for a, b in zip(left, right, strict=True))
    if not tolerance or not isinstance(left, float) or not isinstance(right, float):
        return False
    return math.isclose(left, right, rel_tol=tolerance)


def canonical_rows(table: pa.Table) -> list[Row]:
    """The rows in values that can be hashed, and are equal exactly if Spark's are."""
    columns = [canonical_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def canonical_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times are numbers, because Python's end with the year 9999."""
    numbers = _with_numbers(column.type)
    values = (column if numbers == column.type else column.cast(numbers)).to_pylist()
    return [_canonical(value, column.type) for value in values]


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_numbers(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_with_numbers(kind.key_type), _with_numbers(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    return kind


def _canonical(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    if pa.types.is_list(kind):
        return tuple(_canonical(item, kind.value_type) for item in value)
    if pa.types.is_map(kind):
        pairs = ((_canonical(k, kind.key_type), _canonical(v, kind.item_type)) for k, v in value)
        return tuple(sorted(pairs, key=repr))
    if pa.types.is_struct(kind):
        # By position: names may repeat in a struct, and are no part of its value.
        return tuple(_canonical(value.get(field.name), field.type) for field in kind)
    return value


# ---------------------------------------------------------------- which rows have no equal


def _unmatched(
    left: Sequence[Row], right: Sequence[Row], tolerance: float
) -> tuple[list[int], list[int]]:
    """Numbers of the rows of two bags that have no equal in the other."""
    surplus = Counter(left)
    surplus.subtract(Counter(right))
    missing: list[int] = []
    extra: list[int] = []
    for rows, sign, into in ((left, 1, missing), (right, -1, extra)):
        left_over = {row: sign * n for row, n in surplus.items() if sign * n > 0}
        for number in reversed(range(len(rows))):
            if left_over.get(rows[number], 0) > 0:
                left_over[rows[number]] -= 1
                into.insert(0, number)
    if tolerance:
        for number in list(missing):
            row = left[number]
            near = next((n for n in extra if same_value(row, right[n], tolerance)), None)
            if near is not None:
                missing.remove(number)
                extra.remove(near)
    return missing, extra


def _unmatched_in_order(
    left: Sequence[Row], right: Sequence[Row], tolerance: float
) -> tuple[list[int], list[int]]:
    if len(left) == len(right):
        pairs = list(zip(left, right, strict=True))
        if all(same_value(a, b, tolerance) for a, b in pairs):
            return [], []
    missing: list[int] = []
    extra: list[int] = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        rows = zip(range(a, b), range(c, d), strict=False)
        near = [(i, j) for i, j in rows if same_value(left[i], right[j], tolerance)]
        missing += [i for i in range(a, b) if i not in {i for i, _ in near}]
        extra += [j for j in range(c, d) if j not in {j for _, j in near}]
    return missing, extra


_MAX_COMPARED = 200


def _paired(
    left: Sequence[Row],
    right: Sequence[Row],
    missing: list[int],
    extra: list[int],
    tolerance: float,
) -> list[tuple[int | None, int | None]]:
    """Each missing row with the surplus row that has most values in common, if any has one."""
    pairs: list[tuple[int | None, int | None]] = []
    rest = list(extra)
    for i in missing:
        best, most = None, 0
        for j in rest[:_MAX_COMPARED]:
            equal = sum(same_value(a, b, tolerance) for a, b in zip(left[i], right[j], strict=True))
            if equal > most:
                best, most = j, equal
        if best is None and len(left) == len(right) == 1 and rest:
            best = rest[0]  # one row of one value: the two belong together
        if best is not None:
            rest.remove(best)
        pairs.append((i, best))
    return [*pairs, *((None, j) for j in rest)]
