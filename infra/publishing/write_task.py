"""Writes one part of the table that a result becomes, in a task of its own.

Worker code: runs on a Spark executor or, for a small result, in the driver alike.

    map files of the head stage ─▶ rows of the result ─▶ files of the table
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.formats.publishing import WritePlan, plan_from_dict, plan_to_dict
from stagecoach.infra.publishing.tasks import PublishTask
from stagecoach.infra.storage.object_store import ObjectStore


@dataclass(frozen=True, kw_only=True)
class WriteTask(PublishTask):
    """Some map files of a head stage's output, to be written as files of a table.

    Attributes:
        first_file: Position of the first map file.
        end_file: Position after the last one.
        plan: How its files are written.
        delete_position: Place of the column that tells rows which are not written; the table does
            not have it. None for none.
        writes_empty: Whether a file is written even if there are no rows.
    """

    first_file: int
    end_file: int
    plan: WritePlan
    delete_position: int | None = None
    writes_empty: bool = False

    def work(self, store: ObjectStore, attempt: int) -> list[dict[str, Any]]:
        """Write the files and describe them as the plan does."""
        batches: Iterable[pa.RecordBatch]
        batches = self.output.batches(store, range(self.first_file, self.end_file))
        if self.delete_position is not None:
            batches = _kept(batches, self.delete_position)
        return self.plan.write_reported(
            store,
            batches,
            task_index=self.task_index,
            attempt=attempt,
            writes_empty=self.writes_empty,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {**super().to_dict(), "plan": plan_to_dict(self.plan)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the task that `to_dict` described."""
        return super().from_dict({**values, "plan": plan_from_dict(values["plan"])})


def _kept(batches: Iterable[pa.RecordBatch], position: int) -> Iterator[pa.RecordBatch]:
    """Rows whose flag is not true, without the flag."""
    for batch in batches:
        kept = pc.invert(pc.fill_null(batch.column(position), False))
        names = batch.schema.names
        yield batch.filter(kept).select(names[:position] + names[position + 1 :])
