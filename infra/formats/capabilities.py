"""What a table can do besides being read: expire, be verified, be appended to, be compacted.

Each is a small protocol. A table offers one through the method of `Table` that is named after it
(`Table.expires`, …), or returns None. Commands, Dagster jobs and garbage collection ask the tables
for it and so name no format. Nothing heavy is imported here.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from stagecoach.infra.formats.version_log import LoggedVersion
    from stagecoach.infra.integrity.findings import Check, StoredDamage
    from stagecoach.infra.reading.spark_files import SparkFiles
    from stagecoach.infra.storage.object_store import StorageOptions
    from stagecoach.planner.types import Field


@dataclass(frozen=True, kw_only=True)
class ExpiryRule:
    """What decides whether garbage collection may remove something of a table.

    Attributes:
        pinned_uris: Files that runs read; they stay.
        older_than: The age that the user gave.
        now: The present moment, with a zone; None: what the clock of the table's store says.
    """

    pinned_uris: Collection[str]
    older_than: datetime.timedelta
    now: datetime.datetime | None = None


class Expired(Protocol):
    """What nothing needs of a table any more; nothing is removed yet."""

    @property
    def table_name(self) -> str:
        """Name of the table."""
        ...

    @property
    def num_versions(self) -> int:
        """How many versions of the table go."""
        ...

    @property
    def num_objects(self) -> int:
        """How many stored objects they are."""
        ...

    @property
    def num_bytes(self) -> int:
        """Their size."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there are of each sort, such as `old versions`."""
        ...

    @property
    def metadata(self) -> Mapping[str, int]:
        """What else a Dagster job tells of them, by names without a prefix."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to remove."""
        ...

    def without(self, pinned_uris: Collection[str]) -> Self:
        """Return what still may go where runs have pinned more since."""
        ...

    def remove(self) -> None:
        """Remove it; what is killed on the way goes on next time.

        Raises:
            StorageError: The store failed.
        """
        ...


class Expires(Protocol):
    """A table whose old versions or files garbage collection removes."""

    def find_expired(self, rule: ExpiryRule) -> Expired:
        """Return what may go.

        Raises:
            TableVersionError: The newest version is damaged: what is live is not known.
            StorageError: The store failed.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Adopted:
    """What came of a table's files without checksums.

    Attributes:
        table: Name of the table.
        version: Number of the version with their checksums; None if there is none to be made.
        files: How many files have got checksums.
        damages: Files that cannot be read as they were written, and have got none.
    """

    table: str
    version: int | None
    files: int
    damages: tuple[StoredDamage, ...] = ()


class Verifies(Protocol):
    """A table whose stored objects can be checked."""

    @property
    def name(self) -> str:
        """Name of the table."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether its objects are local files, of which fewer are checked at a time."""
        ...

    def checks(self) -> Iterator[Check]:
        """Yield a check of each stored object, the newest first."""
        ...

    def adopt_checksums(self) -> Adopted | None:
        """Give checksums to files that have none, in one more version of the table.

        Returns:
            None if all files have checksums, or files of this format never do.

        Raises:
            TableVersionError: The newest version is damaged.
            StorageError: The store failed.
        """
        ...


class Appended(Protocol):
    """What an append came to."""

    @property
    def version(self) -> LoggedVersion:
        """The version that holds the rows."""
        ...

    @property
    def num_rows(self) -> int:
        """Rows that were given."""
        ...

    @property
    def num_files(self) -> int:
        """New files of the table."""
        ...

    @property
    def added_columns(self) -> tuple[Field, ...]:
        """Columns that the table has got."""
        ...

    @property
    def seconds(self) -> float:
        """Time that it took."""
        ...


class Appends(Protocol):
    """A table of the catalog that users create and append to."""

    @property
    def name(self) -> str:
        """Name of the table."""
        ...

    @property
    def file_noun(self) -> str:
        """What the format calls a file of its tables, such as `chunk`."""
        ...

    def create(self, columns: tuple[Field, ...]) -> int:
        """Make the table, without rows, and return how many columns it has.

        Raises:
            CatalogError: The table is there already, or its columns do not fit.
            StorageError: The store failed.
        """
        ...

    def columns_of(self, file: str, options: StorageOptions) -> tuple[Field, ...]:
        """Return the columns that a table would take from a file of rows."""
        ...

    def append(
        self,
        items: Sequence[object],
        *,
        sort: bool,
        allow_missing_keys: bool,
        file_format: str | None,
        options: StorageOptions,
    ) -> Appended:
        """Append rows, all of them or none; later items are newer than earlier ones.

        Args:
            items: Files or rows.
            sort: Whether to spend time on order that readers gain from.
            allow_missing_keys: Take columns of the key that rows lack for NULL.
            file_format: Format of the files, where their names do not tell.
            options: How to reach files.

        Raises:
            CatalogError: The rows do not fit the table; it is unchanged.
            StorageError: The store failed; whether the rows are in it, the table tells.
        """
        ...


TARGET_ROWS = 1 << 20
"""Rows up to which a compaction makes files, unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class TableShape:
    """How a table's rows lie in files.

    Attributes:
        num_files: Number of files.
        rows: Rows of them, those that are hidden by newer ones among them.
        num_bytes: Their size in bytes.
        overlap_share: Share of the rows that readers must compare with others, 0 to 1.
    """

    num_files: int
    rows: int
    num_bytes: int
    overlap_share: float


@dataclass(frozen=True, kw_only=True)
class CompactionReport:
    """What a compaction came to.

    Attributes:
        table: Name of the table.
        version: Number of the newest version afterwards.
        before: The table before.
        after: The table after; what others have appended meanwhile is in it.
        merged: Groups of files that were merged.
        skipped: Groups that another compaction has replaced meanwhile.
        seconds: Time that it took.
    """

    table: str
    version: int
    before: TableShape
    after: TableShape
    merged: int = 0
    skipped: int = 0
    seconds: float = 0.0


class Compacts(Protocol):
    """A table whose rows can be put into fewer files."""

    @property
    def name(self) -> str:
        """Name of the table."""
        ...

    @property
    def file_noun(self) -> str:
        """What the format calls a file of its tables, such as `chunk`."""
        ...

    @property
    def file_kinds(self) -> tuple[str, ...]:
        """What Dagster shows its files as, such as `parquet`."""
        ...

    def has_data(self) -> bool:
        """Return whether anything was ever written."""
        ...

    def compact(self, *, target_rows: int = TARGET_ROWS) -> CompactionReport:
        """Merge files; the rows stay what they are.

        Args:
            target_rows: Rows up to which files are made.

        Raises:
            CatalogError: The table has no data yet.
            StorageError: The store failed; what is committed by then stays.
        """
        ...


@dataclass(frozen=True)
class ShownFiles:
    """The files of a table, for people and for programs.

    Args:
        lines: Text.
        values: Plain data, for JSON.
    """

    lines: tuple[str, ...]
    values: Mapping[str, object]


class Infers(Protocol):
    """A table whose columns Spark can find in its files."""

    def inferred_from(self) -> SparkFiles:
        """Return what Spark reads to find them: its files and options, without columns.

        Raises:
            CatalogError: The table has no data yet.
            StorageError: The store failed.
        """
        ...


class ShowsFiles(Protocol):
    """A table that shows how its rows lie in files."""

    def shown_files(self) -> ShownFiles:
        """Return the files of the newest version.

        Raises:
            CatalogError: The table has no data yet.
            StorageError: The store failed.
        """
        ...
