"""Writes the Parquet files of a published table, with bounded memory.

Worker code. Rows of one group wait in memory until they fill a row group; a file ends when it has
its target size. Where there are many groups, the largest is written first when memory runs out, and
the file that was written least recently is closed when too many are open.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stagecoach.infra.formats.partitions import partition_folder
from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.published.row_keys import GroupKey
from stagecoach.infra.formats.published.version import TableFile
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


class ParquetFiles:
    """Writes pieces of rows to files, one group to a file.

    Args:
        store: Where they go.
        table: Name of the table.
        schema: Columns of the files.
        partition_by: Names of the partition columns.
        names: How files are named.
        target_bytes: Size at which a file ends.
    """

    def __init__(
        self,
        store: ObjectStore,
        table: str,
        schema: pa.Schema,
        partition_by: tuple[str, ...],
        names: FileNames,
        target_bytes: int,
    ) -> None:
        self._store = store
        self._table = table
        self._schema = schema
        self._partition_by = partition_by
        self._names = names
        self._target_bytes = target_bytes
        self._max_open = MAX_OPEN_LOCAL if store.is_local else MAX_OPEN_REMOTE
        self._waiting: dict[GroupKey, _Waiting] = {}
        self._waiting_bytes = 0
        self._open: dict[GroupKey, _OpenFile] = {}  # the least recently written first
        self._finished: list[TableFile] = []
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
            StorageError: They cannot be written, or the group's values name no folder.
        """
        waiting = self._waiting.setdefault(key, _Waiting())
        waiting.add(piece)
        self._waiting_bytes += piece.nbytes
        if waiting.num_rows >= ROW_GROUP_ROWS or waiting.num_bytes >= ROW_GROUP_BYTES:
            self._flush(key)
        while self._waiting_bytes > BUFFER_BYTES:
            self._flush(max(self._waiting, key=lambda k: self._waiting[k].num_bytes))

    def close(self) -> list[TableFile]:
        """Finish all files and return them, in the order in which they were begun."""
        for key in list(self._waiting):
            self._flush(key)
        for key in list(self._open):
            self._finish(key)
        return sorted(self._finished, key=lambda file: file.path.rsplit("/", 1)[-1])

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

    def _begin(self, key: GroupKey) -> _OpenFile:
        values = zip(self._partition_by, key[1], strict=True)
        folders = [partition_folder(column, value) for column, value in values]
        path = paths.table_file_path(folders, self._names.name(self._sequence))
        self._sequence += 1
        output = self._store.open_output(paths.table_file(self._table, path))
        return _OpenFile(path, key, output, self._schema)

    def _finish(self, key: GroupKey) -> None:
        file = self._open.pop(key)
        try:
            self._finished.append(file.finish())
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
        path: str,
        key: GroupKey,
        output: AbstractContextManager[ByteSink],
        schema: pa.Schema,
    ) -> None:
        self._path = path
        self._key = key
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

    def finish(self) -> TableFile:
        self._sink.keep_tail()
        self._writer.close()
        output, self._output = self._output, None
        if output is not None:
            output.__exit__(None, None, None)
        footer, checksums = self._sink.parquet_checksums()
        return TableFile(
            path=self._path,
            num_rows=sum(self._row_groups),
            num_bytes=self._sink.num_bytes,
            row_groups=tuple(self._row_groups),
            footer_checksum=footer,
            checksums=checksums,
            partition_key=self._key[0],
            partition=self._key[1],
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
