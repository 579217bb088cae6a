"""Spilled rows of a shuffle writer: in, runs of rows by partition; out, the same rows, from disk.

All runs of a writer are one file of Arrow IPC messages in a private folder that `close` removes:

    run 0: partition 0 | partition 1 | …    run 1: partition 0 | partition 1 | …    …

So a writer needs two open files however much it spills, and reading a partition back costs the
memory of one message. It is read, not mapped: pages of a map count as this process's memory.

Rows enough for a batch of their own are written as the message that the map file will have, so that
they are copied there and not encoded twice; fewer are joined with those of other runs first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from infra.shuffle import encoding
from infra.shuffle.encoding import Piece
from infra.shuffle.ipc_sink import MessageEncoder
from infra.shuffle.map_file import Codec
from infra.storage.object_store import explain_os_error

_LEAST_BYTES = 128 << 10
"""Pieces of this size are batches of the map file: to join them would mean to compress them twice,
which costs more than what larger batches save a reader."""


@dataclass(frozen=True)
class SpilledMessage:
    """A message for the map file as it is, and the number of its rows."""

    content: bytes
    num_rows: int


class SpillRuns:
    """The runs of one writer, in the order in which they were added."""

    def __init__(
        self,
        schema: pa.Schema,
        num_partitions: int,
        spill_dir: str | None,
        *,
        codec: Codec,
        batch_rows: int,
        batch_bytes: int,
    ) -> None:
        """Prepare to spill; nothing is opened before the first run.

        Args:
            schema: Columns of the rows, in plain encodings.
            num_partitions: How many partitions each run has.
            spill_dir: Local folder; `None` is the system's temporary folder.
            codec: Of the map file.
            batch_rows: Target rows of a batch in the map file.
            batch_bytes: Target size of a batch there before compression.
        """
        self._schema = schema
        self._num_partitions = num_partitions
        self._parent = spill_dir or tempfile.gettempdir()
        self._codec = codec
        self._targets = batch_rows, batch_bytes
        self._folder: str | None = None
        self._file: IO[bytes] | None = None
        self._encoders: tuple[MessageEncoder, MessageEncoder] | None = None
        self._num_runs = 0
        # Of each message: where it ends, its rows, their size; 0 if it is copied as it is.
        self._ends, self._rows, self._sizes = array("q"), array("q"), array("q")
        # Of each run and partition: its first message.
        self._first_messages = array("q")

    @property
    def num_bytes(self) -> int:
        """Bytes on disk."""
        return self._ends[-1] if self._ends else 0

    def add(self, pieces: Callable[[int], Iterator[Piece]]) -> None:
        """Write one run: for each partition the pieces, near the target size, that are yielded.

        Raises:
            StorageError: The folder cannot be written, or the disk is full.
        """
        try:
            file, to_copy, to_join = self._open()
            position = self.num_bytes
            for partition in range(self._num_partitions):
                self._first_messages.append(len(self._ends))
                for piece in pieces(partition):
                    is_final = piece.num_bytes >= _LEAST_BYTES or encoding.is_batch(
                        piece, *self._targets
                    )
                    encoder = to_copy if is_final else to_join
                    position += file.write(encoder.encode(piece, partition))
                    self._ends.append(position)
                    self._rows.append(piece.batch.num_rows)
                    self._sizes.append(0 if is_final else piece.num_bytes)
            file.flush()
        except OSError as error:
            raise explain_os_error("spill to", self._folder or self._parent, error) from error
        self._num_runs += 1

    def read(self, partition: int) -> Iterator[Piece | SpilledMessage]:
        """Yield the rows of one partition, run by run; no run can be added afterwards.

        Raises:
            StorageError: A run cannot be read back.
        """
        for run in range(self._num_runs):
            place = run * self._num_partitions + partition
            last = place + 1 == len(self._first_messages)
            end = len(self._ends) if last else self._first_messages[place + 1]
            for message in range(self._first_messages[place], end):
                content = self._read(message)
                if not self._sizes[message]:
                    yield SpilledMessage(content, self._rows[message])
                    continue
                found = pa.ipc.read_message(pa.py_buffer(content))
                batch = pa.ipc.read_record_batch(found, self._schema)
                yield Piece(batch, self._sizes[message])

    def close(self) -> None:
        """Remove the runs."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _read(self, message: int) -> bytes:
        start = self._ends[message - 1] if message else 0
        length = self._ends[message] - start
        try:
            if self._file is None:
                raise OSError("the file of spilled rows is closed")
            self._file.seek(start)
            content = self._file.read(length)
            if len(content) != length:
                raise OSError(f"ends at byte {start + len(content)} of {start + length}")
        except OSError as error:
            folder = self._folder or self._parent
            raise explain_os_error("read spilled rows from", folder, error) from error
        return content

    def _open(self) -> tuple[IO[bytes], MessageEncoder, MessageEncoder]:
        """The file, and the encoders of messages that are copied and that are joined."""
        if self._file is None or self._encoders is None:
            os.makedirs(self._parent, exist_ok=True)
            self._folder = tempfile.mkdtemp(prefix="stagecoach-spill-", dir=self._parent)
            # Without a buffer: messages are large, and each is read once.
            self._file = open(os.path.join(self._folder, "runs"), "w+b", buffering=0)  # noqa: SIM115
            to_copy = MessageEncoder(self._schema, self._codec)
            # Compressed: disk space and page cache are scarcer here than time.
            to_join = to_copy if self._codec == "lz4" else MessageEncoder(self._schema, "lz4")
            self._encoders = to_copy, to_join
        return self._file, *self._encoders
