"""A version of a published table: which files are live, as JSON with a checksum.

    results/<table>/versions/000000000007.json

A version is written once and never changed. It lists all live files, so a reader that has read one
sees that state of the table and no other, whatever is published meanwhile.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stagecoach.infra.formats.published import paths
from stagecoach.infra.formats.publishing import PublishMode
from stagecoach.infra.formats.version_json import TableVersionError as TableVersionError
from stagecoach.infra.formats.version_json import (
    check_fields,
    columns_from_json,
    columns_to_json,
    seal,
    unsealed,
)
from stagecoach.planner.types import Field

FORMAT_VERSION = 4
_READABLE = (1, 2, 3, 4)  # files of format 1 have no checksums of column chunks
_WITHOUT_COMMENTS = 2  # is written where there are none, so that older releases read it
_WITHOUT_STAGED = 3  # likewise
_MERGED: Mapping[str, Any] = {"rewritten": (), "base": 0, "base_files": ""}  # of merges alone


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A live Parquet file of a published table.

    Attributes:
        path: Path below the table's folder.
        num_rows: Rows of the file.
        num_bytes: Size in bytes.
        row_groups: Rows of each row group; they add up to `num_rows`.
        footer_checksum: SHA-256 of the Parquet footer, 32 hex digits.
        partition_key: Dagster's partition that the rows belong to, or None.
        fingerprint: Which output of a head stage it was written from.
        version: Number of the version that it came with.
        partition: Values of the partition columns (`partition_by`) as text, None for NULL.
        checksums: Those of its column chunks, packed (`infra.integrity.checksums`); empty for a
            file that an older Stagecoach wrote.
    """

    path: str
    num_rows: int
    num_bytes: int
    row_groups: tuple[int, ...]
    footer_checksum: str
    partition_key: str | None = None
    fingerprint: str = ""
    version: int = 0
    partition: tuple[str | None, ...] = ()
    checksums: str = ""

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of the partition folders that it lies in."""
        return tuple(self.path.split("/")[1:-1])

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableFile:
        """The file whose fields these are, as JSON has them."""
        lists = {name: tuple(values[name]) for name in ("row_groups", "partition")}
        return cls(**{**values, **lists})


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """What one publication left in the table for one partition key; it may be no rows.

    Attributes:
        partition_key: Dagster's partition, or None.
        fingerprint: Which output of a head stage.
        version: Number of the version that it came with.
        num_rows: Rows that it published; a later merge may have replaced or removed some.
        run_id: The run that published it.
    """

    partition_key: str | None
    fingerprint: str
    version: int
    num_rows: int
    run_id: str = ""


@dataclass(frozen=True, kw_only=True)
class StagedChange:
    """A publication whose files are written and that waits: no reader of the table sees it.

    Attributes:
        id: Its identity; see `staged_version.staged_id`.
        staged_at: When it was staged, ISO 8601 in UTC.
        mode: What it will do to the table.
        fingerprint: Which output of a head stage its files hold.
        rows: Partition keys, None without Dagster partitions, and the rows of each.
        columns: Columns of the table, partition columns last.
        partition_by: Names of the partition columns.
        files: Its files.
        keep_versions: How many of the newest versions gc leaves alone.
        run_id: The run.
        comments: What columns mean, for people: names and texts.
        rewritten: For a merge, the path of each file that it replaces, and what takes its place.
        base: For a merge, the version that it was made on; 0 for none.
        base_files: For a merge, the identity of that version's files.
    """

    id: str
    staged_at: str
    mode: PublishMode
    fingerprint: str
    rows: tuple[tuple[str | None, int], ...]
    columns: tuple[Field, ...]
    partition_by: tuple[str, ...]
    files: tuple[TableFile, ...]
    keep_versions: int = 5
    run_id: str = ""
    comments: tuple[tuple[str, str], ...] = ()
    rewritten: tuple[tuple[str, tuple[TableFile, ...]], ...] = ()
    base: int = 0
    base_files: str = ""

    @property
    def all_files(self) -> tuple[TableFile, ...]:
        """The files of the rows, and those that take the place of others."""
        return (*self.files, *(file for _, some in self.rewritten for file in some))


@dataclass(frozen=True, kw_only=True)
class TableVersion:
    """The state of a published table after one commit.

    Attributes:
        table: Name of the table.
        number: 1 for the first commit; without gaps.
        token: Identity of the commit: no two have the same.
        committed_at: When it was made, ISO 8601 in UTC.
        mode: How it changed the table; `clear` for one that emptied it, `adopt` for one that only
            has checksums of files that had none.
        columns: Columns: those of the files, then the partition columns; none after `clear`.
        partition_by: Names of the partition columns, outermost folder first.
        parts: What is published, by partition key and fingerprint, the oldest first; of merges
            with the same partition key the latest ones.
        files: Live files, in the order of their rows where one publication wrote them.
        keep_versions: How many of the newest versions gc leaves alone.
        run_id: The run that made the commit.
        comments: What columns mean, for people: names and texts.
        staged: What waits to be published, oldest first.
        is_quiet: Whether only `staged` differs from the version before; all that is told of the
            rows is then that version's.
    """

    table: str
    number: int
    token: str
    committed_at: str
    mode: PublishMode | Literal["clear", "adopt"]
    columns: tuple[Field, ...] = ()
    partition_by: tuple[str, ...] = ()
    parts: tuple[TablePart, ...] = ()
    files: tuple[TableFile, ...] = ()
    keep_versions: int = 5
    run_id: str = ""
    comments: tuple[tuple[str, str], ...] = ()
    staged: tuple[StagedChange, ...] = ()
    is_quiet: bool = False

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return sum(file.num_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.num_bytes for file in self.files)

    @property
    def num_files(self) -> int:
        """Number of live files."""
        return len(self.files)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Dagster's partitions that have been published, sorted; those without rows too."""
        return tuple(sorted({p.partition_key for p in self.parts if p.partition_key is not None}))

    @property
    def has_data(self) -> bool:
        """Whether there is something to read, if only an empty file with a schema."""
        return bool(self.files)

    def has_part(self, partition_key: str | None, fingerprint: str) -> bool:
        """Whether that output is published for that partition key."""
        return any(
            p.partition_key == partition_key and p.fingerprint == fingerprint for p in self.parts
        )

    def file_keys(self) -> list[str]:
        """Return the storage keys of the live files."""
        return [paths.table_file(self.table, file.path) for file in self.files]

    def staged_files(self) -> Iterator[TableFile]:
        """Yield the files of what is staged."""
        for staged in self.staged:
            yield from staged.all_files

    def needed_keys(self) -> list[str]:
        """Return the storage keys of all files that must stay: live ones, and those staged."""
        staged = (paths.table_file(self.table, file.path) for file in self.staged_files())
        return [*self.file_keys(), *staged]

    def to_json(self) -> bytes:
        """Return the version's text: keys sorted, its own CRC-32C among them."""
        values: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "table": self.table,
            "number": self.number,
            "token": self.token,
            "committed_at": self.committed_at,
            "mode": self.mode,
            "columns": columns_to_json(self.columns),
            "partition_by": self.partition_by,
            "parts": [vars(part) for part in self.parts],
            "files": [vars(file) for file in self.files],
            "keep_versions": self.keep_versions,
            "run_id": self.run_id,
        }
        if self.comments:
            values["comments"] = self.comments
        if self.staged or self.is_quiet:
            values["staged"] = [_staged_values(staged) for staged in self.staged]
            values["is_quiet"] = self.is_quiet
        else:
            older = _WITHOUT_STAGED if self.comments else _WITHOUT_COMMENTS
            values["format_version"] = older
        return seal(values)

    @classmethod
    def from_json(cls, text: bytes, *, uri: str) -> TableVersion:
        """Return the version whose text this is.

        Args:
            text: What `to_json` returned.
            uri: Where it was found, for messages.

        Raises:
            TableVersionError: It is damaged, has unknown fields or is of another format.
        """
        return unsealed(text, _from_values, uri=uri, format_versions=_READABLE)


def _from_values(values: dict[str, Any]) -> TableVersion:
    values = {"comments": [], "staged": [], "is_quiet": False, **values}
    check_fields(TableVersion, values)
    parts = []
    for part in values["parts"]:
        check_fields(TablePart, part)
        parts.append(TablePart(**part))
    files = _files(values["files"])
    staged = []
    for change in values["staged"]:
        change = {**_MERGED, **change}
        check_fields(StagedChange, change)
        staged.append(_staged_change(change))
    rest = {
        "columns": columns_from_json(values["columns"]),
        "partition_by": tuple(values["partition_by"]),
        "parts": tuple(parts),
        "files": files,
        "comments": _pairs(values["comments"]),
        "staged": tuple(staged),
    }
    return TableVersion(**{**values, **rest})


def _files(found: Iterable[dict[str, Any]]) -> tuple[TableFile, ...]:
    files = []
    for file in found:
        file.setdefault("checksums", "")
        check_fields(TableFile, file)
        files.append(TableFile.from_dict(file))
    return tuple(files)


def _pairs(found: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((one, other) for one, other in found)


def _staged_values(staged: StagedChange) -> dict[str, Any]:
    values = {
        **vars(staged),
        "columns": columns_to_json(staged.columns),
        "files": [vars(file) for file in staged.files],
        "rewritten": [[path, [vars(f) for f in files]] for path, files in staged.rewritten],
    }
    return values if staged.mode == "merge" else {k: values[k] for k in values if k not in _MERGED}


def _staged_change(values: Mapping[str, Any]) -> StagedChange:
    rest = {
        "columns": columns_from_json(values["columns"]),
        "partition_by": tuple(values["partition_by"]),
        "files": _files(values["files"]),
        "rows": _pairs(values["rows"]),
        "comments": _pairs(values["comments"]),
        "rewritten": tuple((path, _files(files)) for path, files in values["rewritten"]),
    }
    return StagedChange(**{**values, **rest})


def file_columns(columns: tuple[Field, ...], partition_by: tuple[str, ...]) -> tuple[Field, ...]:
    """The columns that stand in the files."""
    folders = set(partition_by)
    return tuple(column for column in columns if column.name not in folders)
