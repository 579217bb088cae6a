"""What a stage reads of an Iceberg table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from stagecoach.infra.formats import file_scan
from stagecoach.infra.formats.file_pruning import bound
from stagecoach.infra.formats.mapped_files.scan import MappedScan
from stagecoach.infra.formats.requests import ScanRequest
from stagecoach.infra.formats.snapshot import TableSnapshot
from stagecoach.infra.formats.units import ScanUnit
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.plan.expressions import Call, ColumnRef, Expression, Literal
from stagecoach.planner.types import DataType


@dataclass(frozen=True)
class IcebergScan(MappedScan):
    """A scan of an Iceberg table, planned."""

    @cached_property
    def units(self) -> Sequence[ScanUnit]:
        """The files that neither bounds nor buckets rule out."""
        return [file_scan.unit_of(file) for file in needed_files(self.request, self.table)]


def needed_files(request: ScanRequest, table: TableSnapshot) -> tuple[DataFile, ...]:
    """Return the files that may hold rows which the filters right above the scan let through."""
    files = file_scan.needed_files(request, table)
    known: Mapping[str, Any] = table.detail["files"]
    if not request.filters or not any(buckets for buckets, _ in known.values()):
        return files
    wanted = _wanted_values(request, table)
    if not wanted:
        return files
    pruner = _BucketPruner(wanted)
    return tuple(f for f in files if pruner.may_match(known.get(f.uri, ((), ()))[0]))


def _wanted_values(
    request: ScanRequest, table: TableSnapshot
) -> dict[int, tuple[DataType, list[Any]]]:
    """Which values a column must have, by field id, where the filters name them."""
    columns = {
        column.id: (table.field_id(source), column.dtype)
        for column, source in zip(request.leaf.outputs, request.leaf.source, strict=True)
    }
    found: dict[int, tuple[DataType, list[Any]]] = {}
    for part in request.filters:
        named = _named_values(bound(part, request.parameters, request.time_zone))
        if named is None or named[0] not in columns:
            continue
        field_id, dtype = columns[named[0]]
        values = [_value(literal, dtype) for literal in named[1]]
        if field_id is not None and None not in values:
            found.setdefault(field_id, (dtype, values))
    return found


def _named_values(part: Expression) -> tuple[int, Sequence[Expression]] | None:
    """The column that a predicate compares for equality with constants, and these."""
    if not isinstance(part, Call) or part.function not in ("eq", "in"):
        return None
    first, *others = part.args
    if part.function == "eq" and not isinstance(first, ColumnRef):
        first, others = others[0], [first]
    if not isinstance(first, ColumnRef):
        return None
    return first.id, others


def _value(literal: Expression, dtype: DataType) -> Any:
    """A constant as pyiceberg's transforms take it; None where that is not known."""
    if not isinstance(literal, Literal) or literal.value is None or literal.dtype != dtype:
        return None
    value = literal.value
    match dtype.kind:
        case "int" | "bigint":
            return value if isinstance(value, int) else None
        case "string":
            return value if isinstance(value, str) else None
        case "decimal":
            return Decimal(str(value)).quantize(Decimal(1).scaleb(-dtype.scale))
    try:
        if dtype.kind == "date":
            return (date.fromisoformat(str(value)) - date(1970, 1, 1)).days
        if dtype.kind in ("timestamp", "timestamp_ntz"):
            moment = datetime.fromisoformat(str(value)).replace(tzinfo=None)
            return (moment - datetime(1970, 1, 1)) // datetime.resolution
    except ValueError:
        return None
    return None


class _BucketPruner:
    """Judges files by the buckets that they are of.

    Args:
        wanted: Type and wanted values of columns, by field id.
    """

    def __init__(self, wanted: Mapping[int, tuple[DataType, list[Any]]]) -> None:
        self._wanted = wanted
        self._buckets: dict[tuple[int, str], frozenset[int | None]] = {}

    def may_match(self, buckets: Sequence[tuple[int, str, int | None]]) -> bool:
        """Whether a file of these buckets may have one of the values of each column."""
        return all(
            bucket in self._of(source, transform)
            for source, transform, bucket in buckets
            if source in self._wanted
        )

    def _of(self, source: int, transform: str) -> frozenset[int | None]:
        key = source, transform
        if key not in self._buckets:
            dtype, values = self._wanted[source]
            compute = _bucket_function(transform, dtype)
            self._buckets[key] = frozenset(map(compute, values))
        return self._buckets[key]


def _bucket_function(transform: str, dtype: DataType) -> Any:
    from pyiceberg import types as it
    from pyiceberg.transforms import parse_transform

    kinds: dict[str, Any] = {
        "int": it.IntegerType(),
        "bigint": it.LongType(),
        "string": it.StringType(),
        "date": it.DateType(),
        "timestamp": it.TimestamptzType(),
        "timestamp_ntz": it.TimestampType(),
    }
    kind = it.DecimalType(dtype.precision, dtype.scale) if dtype.is_decimal else kinds[dtype.kind]
    return parse_transform(transform).transform(kind)
