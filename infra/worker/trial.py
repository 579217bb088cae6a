"""A trial before a task chooses between two forms of its fragment.

Worker code. One form aggregates the task's rows, the other gives each row as a state of its own.
The second runs over a sample of one input and all of the others; its groups are counted. What was
read of an input that can be read once comes first when the chosen form reads it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Resources, TaskEngine
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import ParquetInput, PlainInput

MIN_TRIED_ROWS = 2_000
"""Rows of which at least the groups must have been counted to say something of all."""

_COUNTS = pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("c2", pa.int64())])


@dataclass(frozen=True)
class Counted:
    """What a sample showed.

    Args:
        input_rows: Rows that were read of the input that is sampled.
        rows: Rows that the fragment made of them.
        groups: Groups among those.
        inputs: The inputs, as they can be read from the beginning.
    """

    input_rows: int
    rows: int
    groups: int
    inputs: tuple[PlainInput, ...]


def count_groups(
    engine: TaskEngine,
    sql: str,
    num_keys: int,
    inputs: Sequence[PlainInput],
    leaf: int,
    num_rows: int,
    files: tuple[DataFile, ...],
    resources: Resources,
) -> Counted:
    """Count the groups of a sample.

    Args:
        engine: What runs the fragment.
        sql: The fragment that gives each row.
        num_keys: How many of its first columns are keys.
        inputs: What `in_0`, … are.
        leaf: Which of them is sampled.
        num_rows: About how many rows of it are read, where it is a stream.
        files: What is read of it, where it is a scan.
        resources: What the engine may use.

    Raises:
        QueryError: The engine refuses the SQL or fails on the data.
        StagecoachError: What reading an input raised, as it is.
    """
    kept = [_readable_again(one) if i != leaf else one for i, one in enumerate(inputs)]
    sampled = kept[leaf]
    if isinstance(sampled, ParquetInput):
        tried: PlainInput = replace(sampled, files=files)
        input_rows = sum(file.read_rows for file in files)
    else:
        head, rest = _first_rows(sampled.batches(), num_rows)
        input_rows = sum(batch.num_rows for batch in head)
        tried = replace(sampled, batches=functools.partial(iter, head), num_bytes=0)
        kept[leaf] = replace(sampled, batches=functools.partial(itertools.chain, head, rest))
    keys = ", ".join(f"c{i}" for i in range(num_keys))
    counts = (
        f"SELECT {input_rows} AS c0, CAST(coalesce(sum(n), 0) AS BIGINT) AS c1, count(*) AS c2 "
        f"FROM (SELECT count(*) AS n FROM ({sql}) AS tried GROUP BY {keys}) AS counted"
    )
    counted_inputs = [tried if i == leaf else one for i, one in enumerate(kept)]
    with engine.run(Fragment.of(counts, counted_inputs, _COUNTS), resources) as batches:
        (row,) = pa.Table.from_batches(batches, schema=_COUNTS).to_pylist()
    return Counted(input_rows, row["c1"], row["c2"], tuple(kept))


def expected_share(domain: float, rows: float) -> float:
    """Groups per row of rows whose keys are drawn from `domain` values, each as likely."""
    if rows <= 1 or domain <= 0:
        return 1.0
    return min(-domain * math.expm1(-rows / domain) / rows, 1.0)


def predicted_share(rows: int, groups: int, of_rows: float) -> float:
    """Groups per row of all rows, from those of a sample of them.

    Few rows have few repetitions: of a million keys, 100,000 rows show 95,000, and ten million rows
    show all. So the number of keys is sought of which such a sample would show as many groups.

    Args:
        rows: Rows of the sample.
        groups: Groups among them.
        of_rows: Rows of which it is a sample.
    """
    if groups >= rows:
        return 1.0
    low, high = float(groups), float(rows) * rows
    for _ in range(60):
        middle = math.sqrt(low * high)
        if expected_share(middle, rows) * rows < groups:
            low = middle
        else:
            high = middle
    return expected_share(low, max(of_rows, rows))


def _first_rows(
    batches: Iterator[pa.RecordBatch], num_rows: int
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    head: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in head) < num_rows:
        batch = next(batches, None)
        if batch is None:
            break
        head.append(batch)
    return head, batches


def _readable_again(one: PlainInput) -> PlainInput:
    """An input that is read from storage once, however often it is asked for its rows."""
    if isinstance(one, ParquetInput):
        return one
    return replace(one, batches=_Remembered(one.batches))


class _Remembered:
    """The batches of an input, kept once they have been read."""

    def __init__(self, read: Callable[[], Iterator[pa.RecordBatch]]) -> None:
        self._read = read
        self._batches: list[pa.RecordBatch] | None = None

    def __call__(self) -> Iterator[pa.RecordBatch]:
        if self._batches is None:
            self._batches = list(self._read())
        return iter(self._batches)
