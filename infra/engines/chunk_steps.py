"""Progressive evaluation: the first rows by time are sought in the newest chunks first.

Worker code. In: a fragment that gives the first rows by time of one deduplicated table. Out: its
rows, found by running it over more and more of the table until there are enough. The steps of the
input do not overlap in time, so rows that are found early come before all that are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from infra.engines.chunk_inputs import ChunkInput
from infra.engines.duckdb import DuckDbSettings, run_fragment

if TYPE_CHECKING:
    import pyarrow as pa

    from infra.engines.inputs import EngineInput


@contextmanager
def run_in_steps(
    sql: str,
    inputs: Sequence[EngineInput | ChunkInput],
    schema: pa.Schema,
    settings: DuckDbSettings,
    *,
    read: Callable[[int], None],
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Run a fragment as `run_fragment` does, reading no more of its only input than it needs.

    Args:
        sql: One SELECT over `in_0`, ….
        inputs: What those are.
        schema: Names and types of the result.
        settings: Of the database.
        read: Is told how many rows of the input were read, where that is not all.

    Raises:
        QueryError: DuckDB refuses the SQL or fails on the data.
        StagecoachError: What reading an input raised, as it is.
    """
    leaf = inputs[0] if len(inputs) == 1 else None
    if not isinstance(leaf, ChunkInput) or not leaf.fetch or len(leaf.steps) < 2:
        with run_fragment(sql, inputs, schema, settings) as batches:
            yield batches
        return
    found: list[pa.RecordBatch] = []
    for part in _prefixes(leaf):
        with run_fragment(sql, [part], schema, settings) as batches:
            found = list(batches)
        read(part.num_rows)
        if sum(batch.num_rows for batch in found) >= leaf.fetch:
            break
    yield iter(found)


def _prefixes(leaf: ChunkInput) -> Iterator[ChunkInput]:
    """The first step, the first two, the first four, and so on: twice the work at most."""
    count = 1
    while count < len(leaf.steps):
        yield leaf.first(sum(leaf.steps[:count]))
        count *= 2
    yield leaf
