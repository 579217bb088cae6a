"""Spills rows of a shuffle writer to disk and reads them back.

All runs of a writer are one file in a private folder that `close` removes:

    run 0: partition 0 | partition 1 | …    run 1: partition 0 | partition 1 | …    …

So a writer needs two open files however much it spills, and reading a partition back costs the
memory of one message. It is read, not mapped: pages of a map count as this process's memory.

Rows enough for a batch of their own are written as the message that the map file will have, so that
they are copied there and not encoded twice. Fewer are joined with those of other runs first: they
are spilled uncompressed.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from stagecoach.infra.host.process_folders import ProcessFolder
from stagecoach.infra.shuffle.encoding import Piece, is_batch
from stagecoach.infra.shuffle.ipc_sink import MessageEncoder
from stagecoach.infra.shuffle.map_file import Codec
from stagecoach.infra.storage.object_store import explain_os_error

_LEAST_BYTES: dict[Codec, int] = {"none": 128 << 10, "lz4": 256 << 10, "zstd": 512 << 10}
"""Pieces of this size are batches of the map file. Smaller ones go to the disk uncompressed and are
joined first, because a codec takes longer for small buffers, on either side; ZSTD most of all."""


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
        seed: int = 0,
    ) -> None:
        """Prepare to spill; nothing is opened before the first run.

        Args:
            schema: Columns of the rows, in plain encodings.
            num_partitions: How many partitions each run has.
            spill_dir: Local folder; `None` is the system's temporary folder.
            codec: Of the map file.
            batch_rows: Target rows of a batch in the map file.
            batch_bytes: Target size of a batch there before compression.
            seed: Of the map file's messages, `message_seed`.
        """
        self._schema = schema
        self._num_partitions = num_partitions
        self._parent = spill_dir or tempfile.gettempdir()
        self._codec = codec
        self._seed = seed
        self._targets = batch_rows, batch_bytes
        self._folder: ProcessFolder | None = None
        self._file: IO[bytes] | None = None
        self._encoder: MessageEncoder | None = None
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
            file, encoder = self._open()
            position = self.num_bytes
            for partition in range(self._num_partitions):
                self._first_messages.append(len(self._ends))
                for piece in pieces(partition):
                    is_final = self._is_final(piece)
                    batch = piece.batch
                    position += file.write(
                        encoder.encode(batch, partition) if is_final else batch.serialize()
                    )
                    self._ends.append(position)
                    self._rows.append(batch.num_rows)
                    self._sizes.append(0 if is_final else piece.num_bytes)
            file.flush()
        except OSError as error:
            raise explain_os_error("spill to", self._place, error) from error
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
                batch = pa.ipc.read_record_batch(pa.py_buffer(content), self._schema)
                yield Piece(batch, self._sizes[message])

    def _is_final(self, piece: Piece) -> bool:
        return piece.num_bytes >= _LEAST_BYTES[self._codec] or is_batch(piece, *self._targets)

    def close(self) -> None:
        """Remove the runs."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._folder is not None:
            self._folder.close()
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
            raise explain_os_error("read spilled rows from", self._place, error) from error
        return content

    @property
    def _place(self) -> str:
        return self._parent if self._folder is None else self._folder.path

    def _open(self) -> tuple[IO[bytes], MessageEncoder]:
        if self._file is None or self._encoder is None:
            if self._folder is None:
                self._folder = ProcessFolder(self._parent, "spill")
            # Without a buffer: messages are large, and each is read once.
            path = os.path.join(self._folder.path, "runs")
            self._file = open(path, "w+b", buffering=0)  # noqa: SIM115
            self._encoder = MessageEncoder(self._schema, self._codec, seed=self._seed)
        return self._file, self._encoder
