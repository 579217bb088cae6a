"""Which files of a table, and what of them, a scan need not read.

A file's partition columns are constants, and its footer bounds its other columns. A file is left
out where these show that a conjunct above the scan is false or NULL for each of its rows. The
filter stays in the fragment: pruning only saves reading.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.infra.formats.partitions import canonical_value
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.pruning.predicates import bounds_test, timed
from stagecoach.infra.reading.data_file import Constants, DataFile
from stagecoach.infra.reading.row_bounds import (
    ALWAYS,
    NEVER,
    Bounds,
    BoundsTest,
    all_of,
    column_bounds,
)
from stagecoach.planner.optimizer.fold_constants import fold
from stagecoach.planner.plan.expressions import Expression, Literal, Parameter, substitute
from stagecoach.planner.plan.physical import PhysicalPlan, ScanExec
from stagecoach.planner.pruning.scan_filters import conjuncts_above
from stagecoach.planner.tree import transform_up
from stagecoach.planner.types import BIGINT, DATE, INT, STRING, DataType

_COMPARED = (INT, BIGINT, DATE, STRING)  # of whose values the planner knows the order


def table_constants(table: TableSnapshot, file: DataFile, time_zone: str) -> Constants:
    """The partition columns of a file, lower-case names, with their values as text."""
    pairs = zip(table.partition_columns, file.partition, strict=True)
    return tuple(
        (field.name.lower(), canonical_value(text, field.dtype, time_zone)) for field, text in pairs
    )


def pruned_files(
    fragment: PhysicalPlan,
    leaf: ScanExec,
    table: TableSnapshot,
    parameters: Mapping[str, Literal],
    time_zone: str,
) -> tuple[DataFile, ...]:
    """The files that may hold rows which the filters right above the scan let through.

    Args:
        fragment: The stage's fragment.
        leaf: The scan, a node of the fragment.
        table: Its table.
        parameters: Values of the query's parameters.
        time_zone: Session time zone.
    """
    parts = tuple(bound(part, parameters, time_zone) for part in conjuncts_above(fragment, leaf))
    if not parts:
        return table.files
    pruner = _Pruner(leaf, table, parts)
    return tuple(file for file in table.files if pruner.may_match(file))


def row_group_test(
    fragment: PhysicalPlan,
    leaf: ScanExec,
    table: TableSnapshot,
    parameters: Mapping[str, Literal],
    time_zone: str,
) -> BoundsTest | None:
    """What the filters right above a scan ask of the bounds of a row group; None where nothing.

    Its columns go by their positions in the scan. The arguments are those of `pruned_files`.
    """
    # Dates and times of the old calendar are other ones in the footer.
    if table.native_reason is not None:
        return None
    parts = conjuncts_above(fragment, leaf)
    test = all_of(bounds_test(bound(part, parameters, time_zone)) for part in parts)
    positions = {column.id: position for position, column in enumerate(leaf.outputs)}
    found = test.renumbered(positions)
    return None if found == ALWAYS else found


def bound(part: Expression, parameters: Mapping[str, Literal], time_zone: str) -> Expression:
    """A predicate with the values of parameters in it, and its constants folded."""

    def visit(node: Expression) -> Expression:
        if isinstance(node, Parameter) and node.name in parameters:
            return Literal(node.dtype, parameters[node.name].value)
        return timed(fold(node), time_zone)

    return transform_up(part, visit)


class _Pruner:
    """Judges the files of one scan.

    Args:
        leaf: The scan.
        table: Its table.
        parts: Conjuncts that its rows must pass.
    """

    def __init__(self, leaf: ScanExec, table: TableSnapshot, parts: tuple[Expression, ...]) -> None:
        self._table = table
        self._parts = parts
        self._tests: dict[tuple[str | None, ...], BoundsTest] = {}
        read = frozenset[int]().union(*(part.column_ids for part in parts))
        count = len(table.columns) - len(table.partition_columns)
        places = {field.name.lower(): i for i, field in enumerate(table.columns)}
        self._stored: list[tuple[int, int, DataType]] = []  # column, place in the file, type
        self._constant: list[tuple[int, str, DataType]] = []  # column, name, type
        for column, source in zip(leaf.outputs, leaf.source, strict=True):
            place = places.get(source.lower())
            if column.id not in read or place is None:
                continue
            dtype = table.columns[place].dtype
            if place >= count:
                self._constant.append((column.id, source.lower(), dtype))
            # Dates and times of the old calendar are other ones in the footer.
            elif dtype == column.dtype and table.native_reason is None:
                self._stored.append((column.id, place, dtype))

    def may_match(self, file: DataFile) -> bool:
        """Whether a row of the file may pass all conjuncts."""
        test = self._test(file)
        if test in (ALWAYS, NEVER):
            return test == ALWAYS
        bounds: dict[int, Bounds] = {
            column: column_bounds(dtype, file.num_rows, file.bounds[place])
            for column, place, dtype in self._stored
            if place < len(file.bounds)
        }
        return test.may_hold(bounds)

    def _test(self, file: DataFile) -> BoundsTest:
        """What the conjuncts ask of a file's bounds; files of one partition ask alike."""
        found = self._tests.get(file.partition)
        if found is None:
            values = dict(table_constants(self._table, file, "UTC"))
            constants: dict[int, Expression] = {
                column: _literal(values[name], dtype)
                for column, name, dtype in self._constant
                if dtype in _COMPARED
            }
            parts = (transform_up(substitute(part, constants), fold) for part in self._parts)
            found = self._tests[file.partition] = all_of(bounds_test(part) for part in parts)
        return found


def _literal(text: str | None, dtype: DataType) -> Literal:
    if text is None:
        return Literal(dtype, None)
    return Literal(dtype, int(text) if dtype in (INT, BIGINT) else text)
