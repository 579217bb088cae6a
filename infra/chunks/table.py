"""A deduplicated table on storage: in, rows; out, versions of the table.

    rows ─▶ columns checked ─▶ chunk files ─▶ commit of one more version

A commit is one new file, `versions/<number>.json`, with all live chunks (see
`infra.tables.version_log`). A writer that dies before it leaves files that no version names; gc
removes them. Of several writers none waits for another, and none loses anything.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from infra.chunks import changes
from infra.chunks.changes import Commit, check_declaration
from infra.chunks.declaration import Declaration
from infra.chunks.errors import AppendError
from infra.chunks.schema import cast_rows, file_fields, fitted_fields, merge_columns
from infra.chunks.sources import Source, open_source
from infra.chunks.version import ChunkTableVersion, StoredChunk, parsed_version
from infra.chunks.writer import ChunkWriter, check_times
from infra.storage.object_store import ObjectStore, StorageOptions
from infra.tables.log import new_token
from infra.tables.version_log import VersionLog
from planner.errors import CatalogError, UnsupportedSqlError
from planner.types import Field, arrow_schema

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Appended:
    """What an append came to.

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
            items: Files or rows; see `infra.chunks.sources.open_source`.
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
        base = self.current()
        columns: tuple[Field, ...] = () if base is None else base.columns
        opened = [
            open_source(item, columns, position=i, options=options, file_format=file_format)
            for i, item in enumerate(items)
        ]
        fitted, merged = self._fit(opened, columns, allow_missing_keys)
        commit = self.new_commit()
        writer = ChunkWriter(self.store, self.declaration, commit.token)
        num_rows = 0
        try:
            for source, fields in fitted:
                num_rows += self._write(writer, source, fields, merged, sort)
        except BaseException:
            writer.discard()
            raise
        place = opened[0].place if opened else "append"
        version = self._commit(commit, writer, place)
        known = {field.name for field in columns}
        return Appended(
            version=version,
            chunks=tuple(chunk for chunk in version.chunks if chunk.version == version.number),
            num_rows=num_rows,
            added_columns=tuple(f for f in version.columns if f.name not in known),
            seconds=time.perf_counter() - started,
        )

    def _fit(
        self, sources: Sequence[Source], columns: tuple[Field, ...], allow_missing_keys: bool
    ) -> tuple[list[tuple[Source, tuple[Field, ...]]], tuple[Field, ...]]:
        """The sources, each with its columns as the table takes them, and the table's own then."""
        fitted = []
        for source in sources:
            fields = fitted_fields(
                file_fields(source.schema, place=source.place),
                columns,
                declaration=self.declaration,
                table=self.name,
                place=source.place,
                allow_missing_keys=allow_missing_keys,
            )
            columns = merge_columns(
                columns,
                fields,
                declaration=self.declaration,
                table=self.name,
                place=source.place,
            )
            fitted.append((source, fields))
        return fitted, columns

    def _write(
        self,
        writer: ChunkWriter,
        source: Source,
        fields: tuple[Field, ...],
        merged: tuple[Field, ...],
        sort: bool,
    ) -> int:
        """Write the chunks of one source and return its rows."""
        types = {field.name: field.dtype for field in merged}
        fields = tuple(Field(field.name, types[field.name]) for field in fields)
        num_rows = 0
        for piece in source.pieces():
            rows = cast_rows(piece, fields, place=source.place)
            check_times(rows, self.declaration, table=self.name, place=source.place)
            writer.append(rows, fields, sort=sort)
            num_rows += rows.num_rows
        return num_rows

    def _commit(self, commit: Commit, writer: ChunkWriter, place: str) -> ChunkTableVersion:
        step = partial(changes.append, commit=commit, chunks=writer.chunks, place=place)
        try:
            version, _ = self.log.commit(commit.token, step)
        except CatalogError:
            writer.discard()  # refused, so it is in no version
            raise
        log.info(
            "table %s: version %d, %d chunks added", self.name, version.number, len(writer.chunks)
        )
        return version


def utc_now() -> str:
    """This moment, ISO 8601 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
