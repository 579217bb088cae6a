"""What a task reads of a metadata table: its rows, which travel with the task.

Worker code.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from stagecoach.infra.reading.format_input import RowsInput
from stagecoach.infra.reading.inputs import LeafColumn


@dataclass(frozen=True)
class MetadataInput(RowsInput):
    """A scan of a metadata table.

    Args:
        columns: Columns to give.
        stored: The rows, as `packed` has them; empty for none.
        size: How many rows there are.
    """

    columns: tuple[LeafColumn, ...]
    stored: str = ""
    size: int = 0

    @property
    def num_rows(self) -> int:
        """Rows that are read."""
        return self.size

    @property
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""
        return len(self.stored)

    @property
    def num_parts(self) -> int:
        """One, if there are rows."""
        return 1 if self.stored else 0

    def part(self, index: int) -> MetadataInput:
        """Return the only part."""
        return self

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        if not self.stored:
            return
        rows = unpacked(self.stored)
        for batch in rows.to_batches():
            arrays = [batch[column.source] for column in self.columns]
            if arrays:
                yield pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns])
            else:
                yield batch.select([])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        columns = [column.to_list() for column in self.columns]
        return {"columns": columns, "stored": self.stored, "size": self.size}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MetadataInput:
        """Return the scan that `to_dict` described."""
        columns = tuple(map(LeafColumn.from_list, values["columns"]))
        return cls(columns, values["stored"], values["size"])


def packed(rows: pa.Table) -> str:
    """Return rows as text."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


def unpacked(text: str) -> pa.Table:
    """Return the rows that `packed` wrote."""
    return pa.ipc.open_stream(base64.b64decode(text)).read_all()
