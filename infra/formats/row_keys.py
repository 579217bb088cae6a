"""Divides record batches into pieces by partition key and folder.

Worker code. The order of rows is kept inside each piece.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.publishing import PartitionWindow, PublishError, PublishTarget
from stagecoach.infra.formats.result_columns import TEXT_KINDS
from stagecoach.planner.cached_property import cached_property
from stagecoach.planner.types import DataType, Field

_EPOCH = datetime.date(1970, 1, 1)
_INSTANT_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)

GroupKey = tuple[str | None, tuple[str | None, ...]]
"""Dagster's partition key, and the values of the partition columns as text."""


@dataclass(frozen=True, kw_only=True)
class RowKeys:
    """How a row tells the partition that it belongs to.

    Attributes:
        column: 0-based position of the column of the result.
        name: Its name, for messages.
        keys: The partition keys of the run, those of the windows in their order.
        starts: First value of each window, in the column's unit; none where the column holds keys.
        ends: First value after each window.
    """

    column: int
    name: str
    keys: tuple[str, ...]
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`."""
        names = ("column", "name", "keys", "starts", "ends")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RowKeys:
        """The value that `to_dict` described."""
        lists = {name: tuple(values[name]) for name in ("keys", "starts", "ends")}
        return cls(column=values["column"], name=values["name"], **lists)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def indices(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The position among `keys` for each row.

        Raises:
            PublishError: A row belongs to none of them.
        """
        array = batch.column(self.column)
        found = self._by_window(array) if self.starts else self._by_text(array)
        outside = np.flatnonzero(found < 0)
        if len(outside):
            value = array[int(outside[0])].as_py()
            shown = "NULL" if value is None else f"'{value}'"
            run = f"'{self.keys[0]}'" if len(self.keys) == 1 else f"{len(self.keys)} partitions"
            raise PublishError(
                f"a row has {shown} in the partition column '{self.name}', outside of the "
                f"partitions of this run ({run}); filter the query by :partition_start and "
                ":partition_end (or :partition_key), or name the right column"
            )
        return found

    def _by_window(self, array: pa.Array) -> npt.NDArray[np.int64]:
        width = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
        values = pc.fill_null(array.view(width), 0).to_numpy(zero_copy_only=False)
        starts, ends = np.array(self.starts), np.array(self.ends)
        found = np.searchsorted(starts, values.astype(np.int64), side="right").astype(np.int64) - 1
        is_outside = (found < 0) | (values >= ends[found]) | _nulls(array)
        found[is_outside] = -1
        return found

    def _by_text(self, array: pa.Array) -> npt.NDArray[np.int64]:
        codes, values = _encode(array)
        known = [-1 if v is None else self._positions.get(v, -1) for v in values]
        return np.array(known, dtype=np.int64)[codes] if known else codes


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """How rows are divided into files.

    Attributes:
        partition_key: The key of all rows where `row_keys` is None; None without partitions.
        row_keys: How each row tells its own, or None.
        folders: Positions of the partition columns, outermost first.
    """

    partition_key: str | None = None
    row_keys: RowKeys | None = None
    folders: tuple[int, ...] = ()

    def split(self, batch: pa.RecordBatch) -> Iterator[tuple[GroupKey, pa.RecordBatch]]:
        """Yield the pieces of a batch, all its columns, each with its key.

        Raises:
            PublishError: A row belongs to no partition of the run.
        """
        if not batch.num_rows:
            return
        codes = np.zeros(batch.num_rows, dtype=np.int64)
        domains: list[list[str | None]] = []
        if self.row_keys is not None:
            codes = self.row_keys.indices(batch)
            domains.append([*self.row_keys.keys])
        else:
            domains.append([self.partition_key])
        for position in self.folders:
            inner, values = _encode(batch.column(position))
            codes = codes * len(values) + inner
            domains.append(values)
        for code, piece in _pieces(batch, codes):
            texts = _unpack(code, domains)
            yield (texts[0], tuple(texts[1:])), piece


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
    position = next((i for i, c in enumerate(columns) if c.name.lower() == name.lower()), None)
    if position is None:
        raise PublishError(
            f"table '{target.table}': partition column '{name}' is not a column of the result "
            f"({', '.join(c.name for c in columns)}); select it or correct the name"
        )
    dtype = columns[position].dtype
    if not target.windows:
        if dtype.kind not in TEXT_KINDS:
            raise PublishError(
                f"table '{target.table}': partition column '{name}' is {dtype}, whose text is no "
                "partition key; give the time windows of the partitions, or another column"
            )
        return RowKeys(column=position, name=name, keys=keys)
    if sorted(w.key for w in target.windows) != sorted(keys):
        raise PublishError(f"table '{target.table}': there must be one window per partition key")
    ordered, starts, ends = window_bounds(name, dtype, target.windows)
    return RowKeys(column=position, name=name, keys=ordered, starts=starts, ends=ends)


def window_bounds(
    column: str, dtype: DataType, windows: Sequence[PartitionWindow]
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """Keys, starts and ends of windows in the unit of a column, in order of time.

    Raises:
        PublishError: The column is not a date or timestamp, or the windows overlap.
    """
    if not dtype.is_datetime:
        raise PublishError(
            f"partition column '{column}' is {dtype}; rows are told apart by a date or timestamp"
        )
    rows = [(_value(w.start, dtype), _value(w.end, dtype), w.key) for w in windows]
    rows.sort()
    for (_, end, key), (start, _, other) in itertools.pairwise(rows):
        if start < end:
            raise PublishError(f"the windows of the partitions '{key}' and '{other}' overlap")
    return tuple(r[2] for r in rows), tuple(r[0] for r in rows), tuple(r[1] for r in rows)


def _value(moment: datetime.date | datetime.datetime, dtype: DataType) -> int:
    if dtype.kind == "date":
        # The day by the clock of the partitions' own zone.
        day = moment.date() if isinstance(moment, datetime.datetime) else moment
        return (day - _EPOCH).days
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime(moment.year, moment.month, moment.day)
    if dtype.kind == "timestamp" and moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC)
    return (moment.replace(tzinfo=None) - _INSTANT_EPOCH) // _MICROSECOND


def _encode(array: pa.Array) -> tuple[npt.NDArray[np.int64], list[str | None]]:
    """Numbers for the values of a column, and the values as text."""
    encoded = pc.dictionary_encode(array, null_encoding="encode")
    values = encoded.dictionary.cast(pa.string()).to_pylist()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), values


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    return found


def _pieces(
    batch: pa.RecordBatch, codes: npt.NDArray[np.int64]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of equal code, each in the order of the batch."""
    if (codes == codes[0]).all():
        yield int(codes[0]), batch
        return
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1), len(codes)]
    for start, end in itertools.pairwise(bounds):
        # A copy for each piece: slices of one copy would keep all of it in memory.
        yield int(ordered[start]), batch.take(pa.array(order[start:end]))


def _unpack(code: int, domains: Sequence[Sequence[str | None]]) -> list[str | None]:
    texts: list[str | None] = []
    for domain in reversed(domains):
        code, position = divmod(code, len(domain))
        texts.append(domain[position])
    return texts[::-1]
