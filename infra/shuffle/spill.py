"""Spilled runs of a shuffle writer: in, rows by partition; out, the same rows, from local disk.

A run is an Arrow IPC file grouped by partition, in a private folder that `close` removes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from infra.shuffle import encoding
from infra.shuffle.ipc_sink import write_options
from infra.storage.object_store import explain_os_error


@dataclass
class _Run:
    path: str
    first_batches: list[int] = field(default_factory=list)  # of each partition, and the end


class SpillRuns:
    """The runs of one writer, in the order in which they were added."""

    def __init__(self, schema: pa.Schema, num_partitions: int, spill_dir: str | None) -> None:
        self._schema = schema
        self._num_partitions = num_partitions
        self._parent = spill_dir or tempfile.gettempdir()
        self._folder: str | None = None
        self._runs: list[_Run] = []
        self._readers: list[pa.ipc.RecordBatchFileReader] | None = None
        self.num_bytes = 0

    def add(
        self,
        slices: Callable[[int], Iterator[pa.RecordBatch]],
        batch_rows: int,
        batch_bytes: int,
    ) -> None:
        """Write one run: for each partition the batches that `slices` yields for it.

        Raises:
            StorageError: The folder cannot be written, or the disk is full.
        """
        try:
            if self._folder is None:
                os.makedirs(self._parent, exist_ok=True)
                self._folder = tempfile.mkdtemp(prefix="stagecoach-spill-", dir=self._parent)
            run = _Run(os.path.join(self._folder, f"{len(self._runs):05d}.arrow"))
            written = 0
            with (
                pa.OSFile(run.path, "wb") as file,
                # Compressed: disk space and page cache are scarcer here than time.
                pa.ipc.new_file(file, self._schema, options=write_options("lz4")) as writer,
            ):
                for partition in range(self._num_partitions):
                    run.first_batches.append(written)
                    for batch in encoding.coalesce(slices(partition), batch_rows, batch_bytes):
                        writer.write_batch(batch)
                        written += 1
            run.first_batches.append(written)
            self.num_bytes += os.path.getsize(run.path)
        except OSError as error:
            raise explain_os_error("spill to", self._folder or self._parent, error) from error
        self._runs.append(run)

    def read(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, run by run; no run can be added afterwards.

        Raises:
            StorageError: A run cannot be read back.
        """
        try:
            if self._readers is None:
                self._readers = [
                    pa.ipc.open_file(pa.memory_map(run.path, "r")) for run in self._runs
                ]
            for run, reader in zip(self._runs, self._readers, strict=True):
                for number in range(run.first_batches[partition], run.first_batches[partition + 1]):
                    yield reader.get_batch(number)
        except OSError as error:
            folder = self._folder or self._parent
            raise explain_os_error("read spilled rows from", folder, error) from error

    def close(self) -> None:
        """Remove the runs."""
        self._readers = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
