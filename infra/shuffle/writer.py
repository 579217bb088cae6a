"""`ShuffleWriter`: writes a task's batches as one Arrow IPC file grouped by partition.

The way of a row:

    batches ──▶ chunk of a few MB ──▶ partition ids ──▶ stable sort, one take ──▶ held in memory
                                                                 │ over the limit
                                                                 ▼
                                              run on local disk, grouped by partition
    close: for each partition, its slices of all runs and chunks, coalesced ──▶ the map file

Invariants: rows of a partition keep their input order; no row is lost or written twice; memory
stays near `memory_bytes` whatever the input; the file appears in the store whole or not at all.
With one partition there is nothing to sort: batches stream straight into the file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from stagecoach.infra.shuffle import encoding
from stagecoach.infra.shuffle.encoding import Piece
from stagecoach.infra.shuffle.ipc_sink import MapFileSink, message_checksum, message_seed
from stagecoach.infra.shuffle.map_file import Codec, MapFile, OutputPartitioning
from stagecoach.infra.shuffle.partition_ranges import PartitionRanges
from stagecoach.infra.shuffle.partitioner import check_key_type, partition_ids, partitions_in_turn
from stagecoach.infra.shuffle.row_order import RowOrder
from stagecoach.infra.shuffle.sorted_blocks import BLOCK_BYTES, BlockSampler
from stagecoach.infra.shuffle.sorted_rows import HeldRows, SortedChunk
from stagecoach.infra.shuffle.spill import SpilledMessage, SpillRuns
from stagecoach.infra.storage import layout
from stagecoach.infra.storage.object_store import ObjectStore
from stagecoach.planner.errors import StagecoachError

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_MEMORY_BYTES = 256 << 20
DEFAULT_CHUNK_ROWS = 1 << 20
DEFAULT_BATCH_ROWS = 128 << 10
DEFAULT_BATCH_BYTES = 8 << 20
_CHUNK_BYTES = 8 << 20
"""Rows that are sorted at once; the values of more leave the processor's cache."""


class ShuffleWriter:
    """Writes the map file of one attempt of one task.

    Use it as a context manager: an exception aborts it. `close` must be called for the file to
    appear. Nothing is opened before the first row arrives.

    Args:
        store: Where the file goes.
        key: Its key, from `layout.map_file` with an attempt that no other process uses.
        schema: The pinned columns; dictionaries and views in it become plain types.
        partitioning: How rows are divided.
        codec: Compression of the batches.
        memory_bytes: Bound of the memory for rows here, in bytes: held, on their way, and
            written. A row wider than that takes what it takes, a few times.
        chunk_rows: Most rows that are sorted at once.
        batch_rows: Target rows of a batch in the file.
        batch_bytes: Target size of a batch in the file before compression.
        spill_dir: Local folder for spilled runs; `None` is the system's temporary folder.
        order: How the rows of the only partition come sorted, so that ranges of them can be
            read; None where they are not.

    Raises:
        PartitionKeyError: A key column cannot be hashed or does not exist.
    """

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        schema: pa.Schema,
        partitioning: OutputPartitioning,
        *,
        codec: Codec = "lz4",
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        chunk_rows: int = DEFAULT_CHUNK_ROWS,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        batch_bytes: int = DEFAULT_BATCH_BYTES,
        spill_dir: str | None = None,
        order: RowOrder | None = None,
    ) -> None:
        self._task_index, self._attempt = layout.parse_map_file(key)
        self._store = store
        self._key = key
        self._name = key.rsplit("/", 1)[-1]
        self._schema = encoding.plain_schema(schema)
        self._partitioning = partitioning
        self._codec = codec
        self._chunk_rows = chunk_rows
        # Peak: held chunks (1/2), and either pending pieces, their concatenation and the take (up
        # to 1/8 each), or a batch, its concatenation and its message (1/16 each).
        self._chunk_bytes = max(1, min(_CHUNK_BYTES, memory_bytes // 16))
        self._held_limit = max(1, memory_bytes // 2)
        self._batch_rows = batch_rows
        self._sampler = None if order is None or not self._single else BlockSampler(order)
        batch_bytes = batch_bytes if self._sampler is None else min(batch_bytes, BLOCK_BYTES)
        self._batch_bytes = max(1, min(batch_bytes, memory_bytes // 16))
        for position in partitioning.keys:
            field = self._schema.field(position)
            check_key_type(field.name, field.type)
        self._stack = ExitStack()
        self._spill = self._new_spill(spill_dir)
        self._stack.callback(self._spill.close)
        self._sink: MapFileSink | None = None
        # Tasks begin at different partitions: the first ones must not get a row more of each.
        self._dealt_rows = self._task_index
        self._pending: list[Piece] = []
        self._pending_rows = self._pending_bytes = 0
        num_partitions = partitioning.num_partitions
        self._held = HeldRows(batch_rows, self._batch_bytes)
        self._offsets = [0] * num_partitions
        self._lengths = [0] * num_partitions
        self._rows = [0] * num_partitions
        self._checksums = [0] * num_partitions
        self._done = False

    @property
    def schema(self) -> pa.Schema:
        """The schema of the file: the given one in plain encodings."""
        return self._schema

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._done:
            self.abort()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take the rows of `batch`; its buffers may be kept until they are written.

        Raises:
            BatchSchemaError: Its columns are not those of the schema.
            StorageError: The store or the spill folder refused a write.
        """
        self._check_open()
        # An engine's usual batch is a chunk as it is.
        largest = self._batch_bytes if self._single else 2 * self._chunk_bytes
        for piece in encoding.plain_pieces(batch, self._schema, self._chunk_rows, largest):
            self._pending.append(piece)
            self._pending_rows += piece.batch.num_rows
            self._pending_bytes += piece.num_bytes
            if self._single:
                self._stream(final=False)
            elif self._pending_rows >= self._chunk_rows or self._pending_bytes >= self._chunk_bytes:
                self._sort_pending()

    def close(self) -> MapFile:
        """Write what is left, make the file visible and return its report.

        Raises:
            StorageError: The store or the spill folder refused a write; nothing is visible.
        """
        self._check_open()
        try:
            if self._single:
                self._stream(final=True)
            else:
                self._sort_pending()
                self._assemble()
            sink = self._open_sink()
            sink.close()
            report = self._report(sink)
            self._done = True
            self._stack.close()  # commits the file, removes the runs
        except BaseException as error:
            self._fail(error)
            raise
        return report

    def abort(self) -> None:
        """Drop everything; no file appears. Harmless after `close` or another `abort`."""
        if not self._done:
            self._fail(_AbortedError(f"writing of {self._store.uri(self._key)} was aborted"))

    @property
    def _single(self) -> bool:
        return self._partitioning.num_partitions == 1

    def _check_open(self) -> None:
        if self._done:
            raise _AbortedError(f"writer of {self._store.uri(self._key)} is closed already")

    def _fail(self, error: BaseException) -> None:
        self._done = True
        self._pending = []
        self._held.clear()
        self._sink = None
        # The store's context manager sees the error, so it discards the file.
        stack = self._stack.pop_all()
        try:
            stack.__exit__(type(error), error, error.__traceback__)
        except _AbortedError:
            pass
        except BaseException as raised:
            if raised is not error:
                raise

    def _new_spill(self, folder: str | None) -> SpillRuns:
        return SpillRuns(
            self._schema,
            self._partitioning.num_partitions,
            folder,
            codec=self._codec,
            batch_rows=self._batch_rows,
            batch_bytes=self._batch_bytes,
            seed=message_seed(self._name),
        )

    def _open_sink(self) -> MapFileSink:
        if self._sink is None:
            target = self._stack.enter_context(self._store.open_output(self._key))
            self._sink = MapFileSink(
                target,
                self._schema,
                self._codec,
                seed=message_seed(self._name),
            )
        return self._sink

    def _stream(self, *, final: bool) -> None:
        """Write pending batches of the only partition once they make a batch worth writing."""
        enough = self._pending_rows >= self._batch_rows or self._pending_bytes >= self._batch_bytes
        if not (enough or final):
            return
        pending, self._pending = self._pending, []
        self._pending_rows = self._pending_bytes = 0
        self._write_partition(0, iter(pending))

    def _sort_pending(self) -> None:
        """Bring the pending rows into partition order and hold them; spill if too many."""
        if not self._pending:
            return
        rows = encoding.concat([piece.batch for piece in self._pending])
        self._pending = []
        self._pending_rows = self._pending_bytes = 0
        num_partitions = self._partitioning.num_partitions
        if self._partitioning.keys:
            ids = partition_ids(rows, self._partitioning.keys, num_partitions)
        else:
            ids = partitions_in_turn(self._dealt_rows, rows.num_rows, num_partitions)
            self._dealt_rows += rows.num_rows
        self._held.add(SortedChunk(rows, ids, num_partitions))
        if self._held.num_bytes >= self._held_limit:
            self._spill.add(self._held.pieces)
            self._held.clear()

    def _assemble(self) -> None:
        """Write the file partition by partition, from runs in their order, then from memory."""
        for partition in range(self._partitioning.num_partitions):
            self._write_partition(
                partition,
                itertools.chain(self._spill.read(partition), self._held.pieces(partition)),
            )

    def _write_partition(self, partition: int, rows: Iterator[Piece | SpilledMessage]) -> None:
        sink = self._open_sink()
        if not self._rows[partition]:
            self._offsets[partition] = sink.num_bytes
        for message in self._messages(sink, partition, rows):
            (length, self._checksums[partition]), num_rows = message
            self._lengths[partition] += length
            self._rows[partition] += num_rows

    def _messages(
        self, sink: MapFileSink, partition: int, rows: Iterator[Piece | SpilledMessage]
    ) -> Iterator[tuple[tuple[int, int], int]]:
        """Write messages; yield what the sink says of each, and its rows."""
        for kind, group in itertools.groupby(rows, type):
            if kind is SpilledMessage:
                for item in group:
                    if isinstance(item, SpilledMessage):
                        written = sink.write_message(item.content, self._checksums[partition])
                        yield written, item.num_rows
            else:
                pieces = (item for item in group if isinstance(item, Piece))
                for piece in encoding.coalesce(pieces, self._batch_rows, self._batch_bytes):
                    offset, message = sink.num_bytes, sink.encode(piece.batch, partition)
                    written = sink.write_message(message, self._checksums[partition])
                    if self._sampler is not None:
                        checksum = message_checksum([message])
                        self._sampler.add(piece.batch, offset, written[0], checksum)
                    yield written, piece.batch.num_rows

    def _report(self, sink: MapFileSink) -> MapFile:
        return MapFile(
            name=self._name,
            task_index=self._task_index,
            attempt=self._attempt,
            num_bytes=sink.num_bytes,
            num_rows=sum(self._rows),
            checksum=sink.checksum,
            content_checksum=sink.content_checksum,
            schema_hash=encoding.schema_hash(self._schema),
            spilled_bytes=self._spill.num_bytes,
            blocks=None if self._sampler is None else self._sampler.result(),
            ranges=PartitionRanges.of(self._offsets, self._lengths, self._rows, self._checksums),
        )


class _AbortedError(StagecoachError):
    """The writer was aborted or is closed."""
