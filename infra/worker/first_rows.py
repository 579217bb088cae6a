"""Progressive evaluation: first rows are sought in the beginning of a scan first.

The fragment runs over more and more of its only relation until there are enough rows. The
relation's prefixes are in the order that the fragment asks for (`FormatInput.prefixes`), so rows
that are found early come before all that are not read.

Worker code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from stagecoach.infra.reading.format_input import SqlInput

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.engines.protocol import Fragment, Resources, TaskEngine


@contextmanager
def run_in_steps(
    engine: TaskEngine,
    fragment: Fragment,
    resources: Resources,
    *,
    read: Callable[[int], None],
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Run a fragment, reading no more of its only relation than it needs.

    Args:
        engine: What runs it.
        fragment: The fragment.
        resources: What the engine may use.
        read: Is told how many rows of the relation were read, where that is not all.

    Raises:
        QueryError: The engine refuses the SQL or fails on the data.
        StagecoachError: What reading a relation raised, as it is.
    """
    name, leaf = next(iter(fragment.relations.items()), ("", None))
    prefixes: list[SqlInput] = []
    if isinstance(leaf, SqlInput) and len(fragment.relations) == 1 and leaf.fetch:
        prefixes = list(leaf.prefixes())
    if not isinstance(leaf, SqlInput) or len(prefixes) < 2:
        with engine.run(fragment, resources) as batches:
            yield batches
        return
    found: list[pa.RecordBatch] = []
    for part in prefixes:
        with engine.run(replace(fragment, relations={name: part}), resources) as batches:
            found = list(batches)
        read(part.num_rows)
        if sum(batch.num_rows for batch in found) >= leaf.fetch:
            break
    yield iter(found)
