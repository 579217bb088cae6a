"""Which files of a partitioned table a scan need not read: in, a fragment; out, files.

A file's partition columns are constants. Conjuncts above a scan that are false or NULL for them
are so for each of its rows. The filter stays in the fragment: pruning only saves reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infra.catalog.partitions import canonical_value
from infra.catalog.snapshot import FileIdentity, TableSnapshot
from planner.expressions import Expression, Literal, conjuncts, substitute
from planner.optimizer.fold_constants import fold
from planner.physical import FilterExec, PhysicalPlan, ScanExec
from planner.tree import transform_up, walk
from planner.types import BIGINT, DATE, INT, STRING, DataType

Constants = tuple[tuple[str, str | None], ...]
_COMPARED = (INT, BIGINT, DATE, STRING)  # of whose values the planner knows the order


def table_constants(table: TableSnapshot, file: FileIdentity, time_zone: str) -> Constants:
    """The partition columns of a file, lower-case names, with their values as text."""
    pairs = zip(table.partition_columns, file.partition, strict=True)
    return tuple(
        (field.name.lower(), canonical_value(text, field.dtype, time_zone)) for field, text in pairs
    )


def pruned_files(
    fragment: PhysicalPlan, leaf: ScanExec, table: TableSnapshot
) -> tuple[FileIdentity, ...]:
    """The files that may hold rows which the filters right above the scan let through.

    Args:
        fragment: The stage's fragment.
        leaf: The scan, a node of the fragment.
        table: Its table.
    """
    names = {field.name.lower(): field.dtype for field in table.partition_columns}
    columns = {
        column.id: (source.lower(), names[source.lower()])
        for column, source in zip(leaf.outputs, leaf.source, strict=True)
        if source.lower() in names
    }
    parts = [p for p in _conjuncts_above(fragment, leaf) if p.column_ids & columns.keys()]
    if not parts:
        return table.files
    return tuple(
        file
        for file in table.files
        if not _is_excluded(parts, columns, dict(table_constants(table, file, "UTC")))
    )


def _conjuncts_above(fragment: PhysicalPlan, leaf: ScanExec) -> Iterator[Expression]:
    for node in walk(fragment):
        below: PhysicalPlan = node
        found: list[Expression] = []
        while isinstance(below, FilterExec):
            found.extend(conjuncts(below.predicate))
            below = below.child
        if below is leaf and found:
            yield from found
            return


def _is_excluded(
    parts: list[Expression],
    columns: Mapping[int, tuple[str, DataType]],
    constants: Mapping[str, str | None],
) -> bool:
    known: dict[int, Expression] = {
        column: _literal(constants[name], dtype)
        for column, (name, dtype) in columns.items()
        if dtype in _COMPARED
    }
    for part in parts:
        value = transform_up(substitute(part, known), fold)
        if isinstance(value, Literal) and value.value is not True:
            return True
    return False


def _literal(text: str | None, dtype: DataType) -> Literal:
    if text is None:
        return Literal(dtype, None)
    return Literal(dtype, int(text) if dtype in (INT, BIGINT) else text)
