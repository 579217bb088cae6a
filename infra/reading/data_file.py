"""A data file of a table: as a run's snapshot lists it, and as a task reads rows of it.

`DataFile` is the one description of a file that the snapshot, the scan plans, the tasks and the
engines share. It has two forms as plain data: that of the snapshot, which is stored, and a shorter
one that travels to executors. What a listing of storage shows is a `FileEntry`, and what a footer
says is a `FileFooter`; a file of any format becomes a `DataFile` when a snapshot is taken.

Worker code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self
from urllib.parse import unquote

from stagecoach.infra.reading.deletes import UnitDeletes
from stagecoach.infra.reading.file_bounds import StoredBounds

Constants = tuple[tuple[str, str | None], ...]
StoredTypes = tuple[tuple[str, str | None], ...]

_REQUIRED = {
    "uri", "num_bytes", "version", "num_rows", "row_groups", "footer_checksum", "partition",
}  # fmt: skip
_STORED = _REQUIRED | {"bounds", "checksums", "deletes", "stored_types"}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table in the run's snapshot, or neighbouring rows of it.

    It has slots, since there may be a million of them.

    Args:
        uri: Canonical absolute URI: a plain absolute path, or a URL.
        num_rows: Rows of the whole file.
        num_bytes: Size of the whole file.
        version: Which version of the file it is (see `infra.storage.file_identity`); empty for
            files of published tables and chunks, which are never written twice.
        footer_checksum: SHA-256 of the Parquet footer, 32 hex digits; empty if it is not known.
        checksums: Those of its column chunks, packed (`infra.integrity.checksums`); empty for a
            user's own file.
        deletes: Which of its rows are deleted, by places in the whole file; None for none.
        row_groups: Rows of each row group; they add up to `num_rows`. Tasks do not get them.
        partition: Values of the table's partition columns as its folders spell them, None for
            NULL. Tasks get `constants` instead.
        bounds: What the footer says of each column of the table that does not come from folders,
            in the table's order and types; none where unknown. Tasks do not get them.
        stored_types: Columns that the file stores with another type than the table's, or in another
            way than other files, by name in lower case: the type or the way, None for a column that
            it lacks. Files with equal ones are read alike. Tasks get those that they read.
        rows: The first row that is meant and the one after the last; None for all.
        constants: Columns that are not in the file, by source name in lower case: each value as
            text that a cast turns into it, None for NULL. They come from its partition folders.
    """

    uri: str
    num_rows: int
    _: KW_ONLY
    num_bytes: int = 0
    version: str = ""
    footer_checksum: str = ""
    checksums: str = ""
    deletes: UnitDeletes | None = None
    row_groups: tuple[int, ...] = ()
    partition: tuple[str | None, ...] = ()
    bounds: tuple[StoredBounds, ...] = ()
    stored_types: StoredTypes = ()
    rows: tuple[int, int] | None = None
    constants: Constants = ()

    def __post_init__(self) -> None:
        if self.rows == (0, self.num_rows):  # so that equal rows are equal
            object.__setattr__(self, "rows", None)

    @property
    def row_start(self) -> int:
        """The first row that is meant."""
        return 0 if self.rows is None else self.rows[0]

    @property
    def row_end(self) -> int:
        """The row after the last that is meant."""
        return self.num_rows if self.rows is None else self.rows[1]

    @property
    def is_whole(self) -> bool:
        """Whether all of the file is meant."""
        return self.rows is None

    @property
    def read_rows(self) -> int:
        """How many rows are meant."""
        return self.row_end - self.row_start

    @property
    def read_bytes(self) -> int:
        """About how many stored bytes these rows have, in all columns."""
        return self.num_bytes * self.read_rows // self.num_rows if self.num_rows else 0

    @property
    def local_path(self) -> str | None:
        """The path of a local file, None for any other."""
        return local_path(self.uri)

    @property
    def lacks(self) -> frozenset[str]:
        """Columns of the table that are not in the file, lower-case names: they are NULL."""
        return frozenset(name for name, kind in self.stored_types if kind is None)

    def for_task(
        self, rows: tuple[int, int], constants: Constants = (), columns: Collection[str] = ()
    ) -> DataFile:
        """Return rows of the file as a task gets them, without what only the driver needs.

        Args:
            rows: The first row and the one after the last.
            constants: Columns that come from its folders.
            columns: Columns that the task reads, lower-case names.
        """
        return replace(
            self,
            rows=rows,
            constants=constants,
            stored_types=tuple(item for item in self.stored_types if item[0] in columns),
            row_groups=(),
            partition=(),
            bounds=(),
        )

    def to_list(self) -> list[Any]:
        """Plain data for `from_list`, of what a task gets."""
        deletes = None if self.deletes is None else self.deletes.to_dict()
        rest = [deletes, self.stored_types] if self.stored_types else [deletes] if deletes else []
        return [
            self.uri,
            self.row_start,
            self.row_end,
            self.num_rows,
            self.num_bytes,
            self.version,
            self.constants,
            self.footer_checksum,
            self.checksums,
            *rest,
        ]

    @classmethod
    def from_list(cls, values: list[Any]) -> Self:
        """The rows that `to_list` described."""
        uri, start, end, num_rows, num_bytes, version, constants, footer, checksums, *rest = values
        return cls(
            uri,
            num_rows,
            num_bytes=num_bytes,
            version=version,
            footer_checksum=footer,
            checksums=checksums,
            deletes=UnitDeletes.from_dict(rest[0]) if rest and rest[0] else None,
            stored_types=tuple((name, kind) for name, kind in rest[1]) if len(rest) > 1 else (),
            rows=(start, end),
            constants=tuple((name, value) for name, value in constants),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for `from_json`, of the whole file, as a snapshot stores it."""
        body = {name: getattr(self, name) for name in _STORED}
        if self.deletes is None:
            del body["deletes"]
        else:
            body["deletes"] = self.deletes.to_dict()
        if not self.stored_types:
            del body["stored_types"]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> DataFile:
        """The file that `to_json` described, or an older version of Stagecoach.

        Raises:
            ValueError: A key is missing or not known.
        """
        if not _REQUIRED <= body.keys() <= _STORED:
            raise ValueError(f"a file has the keys {', '.join(body)}")
        return DataFile(
            **{
                **body,
                "row_groups": tuple(body["row_groups"]),
                "partition": tuple(body["partition"]),
                "bounds": tuple(tuple(b) for b in body.get("bounds", ())),
                "stored_types": tuple((n, kind) for n, kind in body.get("stored_types", ())),
                "deletes": UnitDeletes.from_dict(body["deletes"]) if "deletes" in body else None,
            }
        )


def local_path(uri: str) -> str | None:
    """The path of a local file's URI, None where the file is elsewhere."""
    if uri.startswith("file://"):
        return unquote(uri.removeprefix("file://"))
    return uri if "://" not in uri else None
