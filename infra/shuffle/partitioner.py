"""The portable hash partitioner: a partition for each row of a batch.

Version 1 is frozen by the vectors in `tests/infra/shuffle/test_partitioner.py`. A change of any
value needs a new `PARTITIONER_VERSION`, because the two sides of a join must agree across runs.

Every value is brought to a canonical form, so that equal SQL values land in the same partition:

    integers, booleans, decimals   unscaled 128-bit value and scale, trailing zeros stripped
                                   (1, 1.0 and 1.00 are alike; so are all widths)
    date, time, timestamp          days, or microseconds (any unit, any zone)
    float, double                  double; -0.0 is 0.0, every NaN is the same
    string, binary                 their bytes
    NULL                           one fixed hash for every type

`h(row)` folds the keys' 64-bit hashes in key order, and the partition is `(h >> 32) * n >> 32`.
Everything is numpy over Arrow buffers: no Python loop over rows, and no `to_numpy` (it imports
pandas, which costs a second in every worker).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stagecoach.infra.shuffle.key_hash import combine, combine_first, hash_array, mix, prepare
from stagecoach.planner.errors import StagecoachError

PARTITIONER_VERSION = 1
MAX_PARTITIONS = 1 << 16
"""Partition ids are `uint16`, which numpy sorts by radix."""

_BLOCK_ROWS = 1 << 14
"""Rows hashed at once: the dozen temporary arrays of a block stay in the processor's cache."""

_SEED = 0x5354_4147_4543_4F41


class PartitionKeyError(StagecoachError):
    """A column cannot be a partition key, or the number of partitions is out of range."""


def hash_rows(batch: pa.RecordBatch, keys: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return one 64-bit hash per row over the columns at positions `keys`.

    Raises:
        PartitionKeyError: A key column has a type without a canonical form (struct, list, …).
    """
    hashes = np.empty(batch.num_rows, dtype=np.uint64)
    for start, block in _hash_blocks(batch, keys):
        hashes[start : start + len(block)] = block
    return hashes


def _hash_blocks(
    batch: pa.RecordBatch, keys: Sequence[int]
) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    """Yield the first row and the hashes of each block of rows."""
    columns = [_key_column(batch, key) for key in keys]
    for start in range(0, batch.num_rows, _BLOCK_ROWS):
        block = combine_first(_SEED, hash_array(columns[0].slice(start, _BLOCK_ROWS)))
        for column in columns[1:]:
            block = combine(block, hash_array(column.slice(start, _BLOCK_ROWS)))
        yield start, mix(block)


def partition_ids(
    batch: pa.RecordBatch, keys: Sequence[int], num_partitions: int
) -> npt.NDArray[np.uint16]:
    """Return the partition of each row, `0 .. num_partitions - 1`.

    Args:
        batch: The rows; slices and validity bitmaps are honoured.
        keys: Positions of the key columns, in the order of the exchange's keys.
        num_partitions: How many partitions, 1 to 65,536.

    Raises:
        PartitionKeyError: A key has no canonical form, or `num_partitions` is out of range.
    """
    if not 1 <= num_partitions <= MAX_PARTITIONS:
        raise PartitionKeyError(
            f"num_partitions is {num_partitions}; it must be between 1 and {MAX_PARTITIONS}"
        )
    if num_partitions == 1:
        return np.zeros(batch.num_rows, dtype=np.uint16)
    ids = np.empty(batch.num_rows, dtype=np.uint16)
    for start, block in _hash_blocks(batch, keys):
        block >>= np.uint64(32)
        block *= np.uint64(num_partitions)
        block >>= np.uint64(32)
        ids[start : start + len(block)] = block
    return ids


def partitions_in_turn(start: int, num_rows: int, num_partitions: int) -> npt.NDArray[np.uint16]:
    """Return the partition of each of some rows that are dealt out one after the other.

    Args:
        start: How many rows were dealt out before.
        num_rows: How many rows.
        num_partitions: How many partitions.
    """
    places = np.arange(start, start + num_rows, dtype=np.int64) % num_partitions
    return places.astype(np.uint16)


def check_key_type(name: str, kind: pa.DataType) -> None:
    """Raise unless a column of type `kind` can be a partition key.

    Raises:
        PartitionKeyError: The type has no canonical form (struct, list, map, interval, …).
    """
    try:
        hash_array(pa.nulls(0, kind))
    except TypeError as error:
        raise PartitionKeyError(
            f"column {name!r} of type {kind} cannot be a partition key; "
            "partition by its atomic parts instead"
        ) from error


def _key_column(batch: pa.RecordBatch, key: int) -> pa.Array:
    """Return the key column, its views and dictionary unpacked once rather than per block."""
    check_key_type(batch.schema.names[key], batch.schema.types[key])
    return prepare(batch.column(key))
