"""What a deduplicated table offers besides being read; see `infra.formats.capabilities`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stagecoach.infra.formats.capabilities import (
    TARGET_ROWS,
    Adopted,
    CompactionReport,
    ExpiryRule,
    ShownFiles,
)
from stagecoach.infra.formats.deduplicated.adoption import adopt_checksums
from stagecoach.infra.formats.deduplicated.checks import table_checks
from stagecoach.infra.formats.deduplicated.compaction import compact
from stagecoach.infra.formats.deduplicated.expiry import ExpiredChunks, find_expired_chunks
from stagecoach.infra.formats.deduplicated.schema import file_fields
from stagecoach.infra.formats.deduplicated.shown import shown_chunks
from stagecoach.infra.formats.deduplicated.sources import open_source
from stagecoach.infra.formats.deduplicated.table import Appended, ChunkTable
from stagecoach.infra.integrity.findings import Check
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.types import NULL, Field


@dataclass(frozen=True)
class ChunkOperations:
    """A deduplicated table to be written and looked after; implements all capabilities.

    Args:
        table: The table.
    """

    table: ChunkTable

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.table.name

    @property
    def is_local(self) -> bool:
        """Whether its chunks are local files."""
        return self.table.store.is_local

    def find_expired(self, rule: ExpiryRule) -> ExpiredChunks:
        """Return the chunks, versions and files that may go."""
        return find_expired_chunks(self.table, rule)

    def checks(self) -> Iterator[Check]:
        """Yield a check of each version and chunk."""
        return table_checks(self.table)

    def adopt_checksums(self) -> Adopted | None:
        """Give checksums to chunks that have none."""
        return adopt_checksums(self.table)

    @property
    def file_noun(self) -> str:
        """A file is a chunk."""
        return "chunk"

    def create(self, columns: tuple[Field, ...]) -> int:
        """Commit the first version, without rows."""
        return len(self.table.create(columns).columns)

    def columns_of(self, file: str, options: StorageOptions) -> tuple[Field, ...]:
        """Return the columns of a Parquet or Arrow file."""
        source = open_source(file, (), options=options)
        fields = file_fields(source.schema, place=source.place)
        return tuple(field for field in fields if field.dtype != NULL)

    def append(
        self,
        items: Sequence[object],
        *,
        sort: bool,
        allow_missing_keys: bool,
        file_format: str | None,
        options: StorageOptions,
    ) -> Appended:
        """Append rows; see `ChunkTable.append`."""
        return self.table.append(
            items,
            sort=sort,
            allow_missing_keys=allow_missing_keys,
            file_format=file_format,
            options=options,
        )

    @property
    def file_kinds(self) -> tuple[str, ...]:
        """Compaction makes Parquet files."""
        return ("parquet",)

    def has_data(self) -> bool:
        """Return whether there is a version, if only one without rows."""
        return self.table.current() is not None

    def compact(self, *, target_rows: int = TARGET_ROWS) -> CompactionReport:
        """Merge chunks that overlap, and small neighbours."""
        return compact(self.table, target_rows=target_rows)

    def shown_files(self) -> ShownFiles:
        """Return the chunks in groups of those that may share keys."""
        return shown_chunks(self.table)
