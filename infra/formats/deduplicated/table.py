"""A deduplicated table on storage, and how rows get into it.

    rows ─▶ columns checked ─▶ chunk files ─▶ commit of one more version

A commit is one new file, `versions/<number>.json`, with all live chunks (see
`infra.formats.version_log`). A writer that dies before it leaves files that no version
names; gc removes them. Of several writers none waits for another, and none loses anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stagecoach.infra.formats.deduplicated import changes
from stagecoach.infra.formats.deduplicated.changes import Commit, check_declaration
from stagecoach.infra.formats.deduplicated.declaration import Declaration
from stagecoach.infra.formats.deduplicated.errors import AppendError
from stagecoach.infra.formats.deduplicated.schema import (
    cast_rows,
    file_fields,
    fitted_fields,
    merge_columns,
)
from stagecoach.infra.formats.deduplicated.sources import Source, open_source
from stagecoach.infra.formats.deduplicated.version import (
    ChunkTableVersion,
    StoredChunk,
    parsed_version,
)
from stagecoach.infra.formats.deduplicated.writer import ChunkWriter, check_times
from stagecoach.infra.formats.version_log import VersionLog, new_token, utc_now
from stagecoach.infra.storage.object_store import ObjectStore, StorageOptions
from stagecoach.planner.errors import CatalogError, UnsupportedSqlError
from stagecoach.planner.types import Field, arrow_schema

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Appended:
    """What an append came to; implements `stagecoach.infra.formats.capabilities.Appended`.

    Attributes:
        version: The version that holds the rows.
        chunks: The new chunks, as they are in it.
        num_rows: Rows that were given; a sorted chunk leaves out those that newer ones hide.
        added_columns: Columns that the table has got.
        seconds: Time that it took.
    """

    version: ChunkTableVersion
    chunks: tuple[StoredChunk, ...]
    num_rows: int
    added_columns: tuple[Field, ...] = ()
    seconds: float = 0.0

    @property
    def num_files(self) -> int:
        """Number of new chunks."""
        return len(self.chunks)


@dataclass(frozen=True)
class ChunkTable:
    """A deduplicated table.

    Args:
        name: Its name.
        store: Its location, a root of its own.
        declaration: Key and roles of its columns.
    """

    name: str
    store: ObjectStore
    declaration: Declaration

    @property
    def log(self) -> VersionLog[ChunkTableVersion]:
        """The versions of the table."""
        return VersionLog(
            self.store,
            self.name,
            "",
            lambda text, uri: parsed_version(text, uri=uri),
        )

    def current(self) -> ChunkTableVersion | None:
        """Return the newest version, or None where nothing was ever written.

        Raises:
            CatalogError: The table was created with another declaration.
            TableVersionError: The newest version is damaged.
            StorageError: The store failed.
        """
        version = self.log.current()
        if version is not None:
            check_declaration(version, self.declaration)
        return version

    def read(self) -> ChunkTableVersion:
        """Return the newest version.

        Raises:
            CatalogError: Nothing was ever written, or as `current`.
        """
        version = self.current()
        if version is None:
            raise CatalogError(
                f"table '{self.name}' has no data yet at {self.store.uri('chunks')}; create it "
                f"(stagecoach tables create {self.name}) or append to it"
            )
        return version

    def new_commit(self) -> Commit:
        """Return a commit of this moment."""
        return Commit(
            table=self.name,
            declaration=self.declaration,
            token=new_token(),
            committed_at=utc_now(),
        )

    def create(self, columns: tuple[Field, ...]) -> ChunkTableVersion:
        """Commit the first version, without rows.

        Raises:
            AppendError: The table is there already, or its columns do not fit the declaration.
            StorageError: The store failed.
        """
        try:
            file_fields(arrow_schema(columns), place="create")
        except UnsupportedSqlError as error:
            raise AppendError(f"create: {error.message}") from error
        commit = self.new_commit()
        made, _ = self.log.commit(commit.token, lambda base: changes.create(base, commit, columns))
        return made

    def append(
        self,
        items: Sequence[object],
        *,
        sort: bool = False,
        allow_missing_keys: bool = False,
        file_format: str | None = None,
        options: StorageOptions | None = None,
    ) -> Appended:
        """Append rows, all of them or none; later items are newer than earlier ones.

        Args:
            items: Files or rows; see `stagecoach.infra.formats.deduplicated.sources.open_source`.
            sort: Write Parquet, sorted by the key, each key once, instead of Arrow IPC as it is.
            allow_missing_keys: Take columns of the key that rows lack for NULL.
            file_format: Format of the files, where their names do not tell.
            options: How to reach files on S3.

        Raises:
            AppendError: The rows do not fit the table; it is unchanged.
            CatalogError: The table was created with another declaration.
            StorageError: The store failed; whether the rows are in it, the table tells.
        """
        started = time.perf_counter()
        made = ChunkAppend(
            self,
            sort=sort,
            allow_missing_keys=allow_missing_keys,
            file_format=file_format,
            options=options,
        )
        known = {field.name for field in made.columns}
        num_rows = made.stage(items)
        made.publish()
        version = made.version
        return Appended(
            version=version,
            chunks=tuple(chunk for chunk in version.chunks if chunk.version == version.number),
            num_rows=num_rows,
            added_columns=tuple(f for f in version.columns if f.name not in known),
            seconds=time.perf_counter() - started,
        )


class ChunkAppend:
    """An append under way; implements `stagecoach.infra.formats.protocol.TableWriter`.

    Args:
        table: The table.
        token: Identity of the commit, which is then looked for among the versions that are kept:
            what was published under it is not published again. None for a new one.
        sort: See `ChunkTable.append`, as for the others.
        allow_missing_keys: Take columns of the key that rows lack for NULL.
        file_format: Format of the files, where their names do not tell.
        options: How to reach files on S3.

    Raises:
        CatalogError: The table was created with another declaration.
        StorageError: The store failed.
    """

    def __init__(
        self,
        table: ChunkTable,
        token: str | None = None,
        *,
        sort: bool = False,
        allow_missing_keys: bool = False,
        file_format: str | None = None,
        options: StorageOptions | None = None,
    ) -> None:
        base = table.current()
        self.columns: tuple[Field, ...] = () if base is None else base.columns
        self._table = table
        self._is_new = token is None
        commit = table.new_commit()
        self._commit = commit if token is None else replace(commit, token=token)
        self._writer = ChunkWriter(table.store, table.declaration, commit.token)
        self._sort = sort
        self._allow_missing_keys = allow_missing_keys
        self._file_format = file_format
        self._options = options
        self._place = "append"
        self._version: ChunkTableVersion | None = None

    @property
    def version(self) -> ChunkTableVersion:
        """The version that holds the rows, once they are published."""
        if self._version is None:
            raise AppendError(f"the rows for table '{self._table.name}' are not published yet")
        return self._version

    def stage(self, rows: Sequence[object]) -> int:
        """Write the chunks of files or rows and return how many rows there were.

        Raises:
            AppendError: The rows do not fit the table.
            StorageError: The store failed.
        """
        opened = [
            open_source(
                item,
                self.columns,
                position=position,
                options=self._options,
                file_format=self._file_format,
            )
            for position, item in enumerate(rows)
        ]
        fitted = self._fit(opened)
        if opened:
            self._place = opened[0].place
        try:
            return sum(self._write(source, fields) for source, fields in fitted)
        except BaseException:
            self.discard()
            raise

    def publish(self) -> int:
        """Commit the chunks and return the number of the version that holds them.

        Raises:
            AppendError: The table does not take them.
            StorageError: The store failed; whether the rows are in the table, it tells.
        """
        if self._version is not None:
            return self._version.number
        log_, chunks = self._table.log, self._writer.chunks

        def step(base: ChunkTableVersion | None) -> ChunkTableVersion | None:
            if base is not None and self._is_published():
                return None
            return changes.append(base, commit=self._commit, chunks=chunks, place=self._place)

        try:
            version, _ = log_.commit(self._commit.token, step)
        except CatalogError:
            self.discard()  # refused, so it is in no version
            raise
        if not {chunk.name for chunk in chunks} <= {chunk.name for chunk in version.chunks}:
            self.discard()  # another writer had published the token, with files of its own
        self._version = version
        log.info(
            "table %s: version %d, %d chunks added", version.table, version.number, len(chunks)
        )
        return version.number

    def discard(self) -> None:
        """Remove the chunks that were written."""
        self._writer.discard()

    def _is_published(self) -> bool:
        """Whether a version that is kept has the token of this commit."""
        if self._is_new:
            return False
        return any(version.token == self._commit.token for version in self._table.log.kept())

    def _fit(self, sources: Sequence[Source]) -> list[tuple[Source, tuple[Field, ...]]]:
        """The sources, each with its columns as the table takes them, which may add some."""
        table, fitted, columns = self._table, [], self.columns
        for source in sources:
            fields = fitted_fields(
                file_fields(source.schema, place=source.place),
                columns,
                declaration=table.declaration,
                table=table.name,
                place=source.place,
                allow_missing_keys=self._allow_missing_keys,
            )
            columns = merge_columns(
                columns,
                fields,
                declaration=table.declaration,
                table=table.name,
                place=source.place,
            )
            fitted.append((source, fields))
        self.columns = columns
        return fitted

    def _write(self, source: Source, fields: tuple[Field, ...]) -> int:
        """Write the chunks of one source and return its rows."""
        table = self._table
        types = {field.name: field.dtype for field in self.columns}
        fields = tuple(Field(field.name, types[field.name]) for field in fields)
        num_rows = 0
        for piece in source.pieces():
            rows = cast_rows(piece, fields, place=source.place)
            check_times(rows, table.declaration, table=table.name, place=source.place)
            self._writer.append(rows, fields, sort=self._sort)
            num_rows += rows.num_rows
        return num_rows
