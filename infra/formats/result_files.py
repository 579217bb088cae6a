"""Writes the rows of a result as Parquet files, with bounded memory.

Worker code. Rows of one group wait in memory until they fill a row group; a file ends when it has
its target size. Where there are many groups, the largest is written first when memory runs out, and
the file that was written least recently is closed when too many are open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.formats.row_keys import GroupKey
from stagecoach.infra.formats.tail_sink import TailSink
from stagecoach.infra.storage.object_store import ByteSink, ObjectStore

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 64 << 20
"""Largest row group, in bytes of Arrow memory."""
BUFFER_BYTES = 128 << 20
"""Rows of all groups that wait in memory, in bytes."""
MAX_OPEN_LOCAL = 64
MAX_OPEN_REMOTE = 8
"""Open files; each upload holds a part of some megabytes in memory."""


@dataclass(frozen=True, kw_only=True)
class FileNames:
    """How files are named: by commit, task, position and attempt, so that no two are the same."""

    token: str
    task_index: int
    attempt: str

    def name(self, sequence: int) -> str:
        """The name of the `sequence`-th file; in the order of names rows keep their order."""
        return f"{self.token}-{self.task_index:05d}-{sequence:05d}-{self.attempt}.parquet"


@dataclass(frozen=True, kw_only=True)
class WrittenParquet:
    """A file that was written.

    Attributes:
        key: Its key in the store.
        group: What all its rows have in common.
        num_bytes: Size in bytes.
        row_groups: Rows of each row group.
        footer_checksum: SHA-256 of the footer, 32 hex digits.
        checksums: Those of its column chunks, packed.
        metadata: Its footer.
    """

    key: str
    group: GroupKey
    num_bytes: int
    row_groups: tuple[int, ...]
    footer_checksum: str
    checksums: str
    metadata: pq.FileMetaData

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return sum(self.row_groups)


class ParquetFiles:
    """Writes pieces of rows to files, one group to a file.

    Args:
        store: Where they go.
        schema: Columns of the files.
        key_of: Gives the key of the file that is begun for a group, by its number.
        target_bytes: Size at which a file ends.
        options: More arguments of pyarrow's `ParquetWriter`.
    """

    def __init__(
        self,
        store: ObjectStore,
        schema: pa.Schema,
        key_of: Callable[[GroupKey, int], str],
        target_bytes: int,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._store = store
        self._schema = schema
        self._key_of = key_of
        self._options = options
        self._target_bytes = target_bytes
        self._max_open = MAX_OPEN_LOCAL if store.is_local else MAX_OPEN_REMOTE
        self._waiting: dict[GroupKey, _Waiting] = {}
        self._waiting_bytes = 0
        self._open: dict[GroupKey, _OpenFile] = {}  # the least recently written first
        self._finished: list[tuple[int, WrittenParquet]] = []
        self._sequence = 0

    def __enter__(self) -> ParquetFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._open.values():
            file.discard(error or RuntimeError("not closed"))
        self._open.clear()

    def write(self, key: GroupKey, piece: pa.RecordBatch) -> None:
        """Take rows of one group.

        Raises:
            StorageError: They cannot be written, or there is no key for the group.
        """
        waiting = self._waiting.setdefault(key, _Waiting())
        waiting.add(piece)
        self._waiting_bytes += piece.nbytes
        if waiting.num_rows >= ROW_GROUP_ROWS or waiting.num_bytes >= ROW_GROUP_BYTES:
            self._flush(key)
        while self._waiting_bytes > BUFFER_BYTES:
            self._flush(max(self._waiting, key=lambda k: self._waiting[k].num_bytes))

    def close(self) -> list[WrittenParquet]:
        """Finish all files and return them, in the order in which they were begun."""
        for key in list(self._waiting):
            self._flush(key)
        for key in list(self._open):
            self._finish(key)
        return [file for _, file in sorted(self._finished, key=lambda item: item[0])]

    def write_empty(self, key: GroupKey) -> None:
        """Begin a file without rows, which tells readers the columns."""
        self._file_of(key)

    def _flush(self, key: GroupKey) -> None:
        """Write what waits of a group as one row group."""
        waiting = self._waiting.pop(key)
        self._waiting_bytes -= waiting.num_bytes
        file = self._file_of(key)
        file.write(pa.Table.from_batches(waiting.pieces, schema=self._schema))
        if file.num_bytes >= self._target_bytes:
            self._finish(key)

    def _file_of(self, key: GroupKey) -> _OpenFile:
        file = self._open.pop(key, None)
        if file is None:
            while len(self._open) >= self._max_open:
                self._finish(next(iter(self._open)))
            file = self._begin(key)
        self._open[key] = file
        return file

    def _begin(self, group: GroupKey) -> _OpenFile:
        number = self._sequence
        key = self._key_of(group, number)
        self._sequence += 1
        output = self._store.open_output(key)
        return _OpenFile(number, key, group, output, self._schema, self._options)

    def _finish(self, key: GroupKey) -> None:
        file = self._open.pop(key)
        try:
            self._finished.append((file.number, file.finish()))
        except BaseException as error:
            file.discard(error)
            raise


@dataclass
class _Waiting:
    """Rows of one group that are not written yet."""

    pieces: list[pa.RecordBatch] = field(default_factory=list)
    num_rows: int = 0
    num_bytes: int = 0

    def add(self, piece: pa.RecordBatch) -> None:
        self.pieces.append(piece)
        self.num_rows += piece.num_rows
        self.num_bytes += piece.nbytes


class _OpenFile:
    """One Parquet file under way."""

    def __init__(
        self,
        number: int,
        key: str,
        group: GroupKey,
        output: AbstractContextManager[ByteSink],
        schema: pa.Schema,
        options: Mapping[str, Any],
    ) -> None:
        self.number = number
        self._key = key
        self._group = group
        self._output: AbstractContextManager[ByteSink] | None = output
        self._sink = TailSink(output.__enter__())
        self._row_groups: list[int] = []
        self._writer: Any = None
        try:
            self._writer = pq.ParquetWriter(
                pa.PythonFile(self._sink, mode="w"),
                schema,
                compression="zstd",
                write_statistics=True,
                write_page_checksum=True,  # for other readers; ours have those of column chunks
                **options,
            )
        except BaseException as error:
            self.discard(error)
            raise

    @property
    def num_bytes(self) -> int:
        return self._sink.num_bytes

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        self._row_groups.append(rows.num_rows)

    def finish(self) -> WrittenParquet:
        self._sink.keep_tail()
        self._writer.close()
        output, self._output = self._output, None
        if output is not None:
            output.__exit__(None, None, None)
        footer, checksums = self._sink.parquet_checksums()
        return WrittenParquet(
            key=self._key,
            group=self._group,
            num_bytes=self._sink.num_bytes,
            row_groups=tuple(self._row_groups),
            footer_checksum=footer,
            checksums=checksums,
            metadata=self._sink.parquet_metadata(),
        )

    def discard(self, error: BaseException) -> None:
        """Leave nothing visible."""
        self._sink.drop()
        if self._writer is not None:
            self._writer.close()  # or it would close itself when it is collected
        output, self._output = self._output, None
        if output is not None:
            try:
                output.__exit__(type(error), error, error.__traceback__)
            except BaseException as raised:
                if raised is not error:
                    raise
