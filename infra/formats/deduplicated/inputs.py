"""What a task reads of a deduplicated table: `ChunkInput`, decided by the driver.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.integrity.local import DEFAULT_CHECKS, FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import SqlInput
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.reading.row_groups import DEFAULT_MEMORY_BYTES

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, kw_only=True)
class ChunkRows(DataFile):
    """Rows of a chunk. The footer checksum of an Arrow file is that of the whole file.

    Args:
        kind: `parquet` or `arrow`.
        sequence: Number of the write.
        stored: Which of the needed columns the file has, by source name, with the file's types.
        may_hold_nan: Which of the stored columns may hold NaN.
        has_duplicates: Whether a key may occur twice in it.
        has_deletes: Whether rows may be marked as deleted.
        clip: SQL over the names of columns: which rows are meant; empty for all.
    """

    kind: str
    sequence: int
    stored: tuple[tuple[str, str], ...]
    may_hold_nan: tuple[str, ...] = ()
    has_duplicates: bool = True
    has_deletes: bool = False
    clip: str = ""

    def to_list(self) -> list[Any]:
        """Plain data for `from_list`."""
        return [super().to_list(), {name: getattr(self, name) for name in _OF_CHUNKS}]

    @classmethod
    def from_list(cls, values: list[Any]) -> ChunkRows:
        """The rows that `to_list` described."""
        file, own = values
        stored = tuple((name, kind) for name, kind in own["stored"])
        may_hold_nan = tuple(own["may_hold_nan"])
        own = {**own, "stored": stored, "may_hold_nan": may_hold_nan}
        plain = DataFile.from_list(file)  # which has slots, so `vars` does not take it
        return cls(**{name: getattr(plain, name) for name in _OF_FILES}, **own)


_OF_FILES = [f.name for f in fields(DataFile)]
_OF_CHUNKS = [f.name for f in fields(ChunkRows) if f.name not in _OF_FILES]


@dataclass(frozen=True, kw_only=True)
class ChunkPart:
    """Rows that are right by themselves: no other part has a row with a key of theirs.

    Args:
        plain: No row of these has a twin.
        base: No key occurs twice in these; a row is hidden by one of `newer` with its key.
        newer: Rows of which the latest for each key is shown.
        are_newer_distinct: Whether no key occurs twice in those.
        key: Names of the columns that tell rows apart.
        where: SQL over the names of columns that is alike for rows with equal keys; empty for all.
        shares: Of the keys by hash: the first share that is read, the one after the last, and how
            many there are.
    """

    plain: tuple[ChunkRows, ...] = ()
    base: tuple[ChunkRows, ...] = ()
    newer: tuple[ChunkRows, ...] = ()
    are_newer_distinct: bool = False
    key: tuple[str, ...] = ()
    where: str = ""
    shares: tuple[int, int, int] = (0, 1, 1)

    @property
    def files(self) -> tuple[ChunkRows, ...]:
        """Everything that is read."""
        return (*self.plain, *self.base, *self.newer)


@dataclass(frozen=True, kw_only=True)
class ChunkInput(SqlInput):
    """A scan of a deduplicated table.

    Args:
        columns: Columns to give.
        hidden: Columns that are needed besides: of the key, the version, the mark, the time.
        parts: What is read; none for an empty input.
        version: Name of the version column; empty if there is none.
        marker: Name of the column that marks deleted rows; empty if there is none.
        fetch: How many rows a reader wants that wants the first ones by time; 0 for any other.
        steps: With `fetch`: numbers of neighbouring parts that belong together, so that all times
            of a step lie before those of the next, in the reader's order.
        storage_options: How to reach files that are not local, for `StorageOptions.from_dict`.
        memory_bytes: Bound of the bytes of such a Parquet file that are fetched and not decoded.
        checks: What is checked of the files before they are read.
    """

    columns: tuple[LeafColumn, ...]
    hidden: tuple[LeafColumn, ...] = ()
    parts: tuple[ChunkPart, ...] = ()
    version: str = ""
    marker: str = ""
    fetch: int = 0
    steps: tuple[int, ...] = ()
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    checks: FileChecks = DEFAULT_CHECKS

    @property
    def files(self) -> tuple[ChunkRows, ...]:
        """Everything that is read; a file may occur in several parts."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def num_rows(self) -> int:
        """Rows that are read, hidden ones included."""
        return sum(file.read_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""
        return sum(file.read_bytes for file in self.files)

    @property
    def compared_rows(self) -> int:
        """Rows of files that are compared with others."""
        compared = (file for part in self.parts for file in (*part.base, *part.newer))
        return sum(file.read_rows for file in compared)

    @property
    def file_rows(self) -> tuple[DataFile, ...]:
        """The files of the chunks."""
        return self.files

    @property
    def metrics(self) -> Mapping[str, int]:
        """How many rows are compared with others."""
        return {"compared_rows": self.compared_rows}

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return len(self.parts)

    def bind(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        memory_bytes: int,
        input_errors: list[BaseException],
    ) -> None:
        """Make `name` a view with one row for each key."""
        from stagecoach.infra.formats.deduplicated.duckdb_view import bind_chunks

        bind_chunks(cursor, name, self, memory_bytes, input_errors)

    def reached(
        self, storage_options: Mapping[str, Any], memory_bytes: int, checks: FileChecks
    ) -> ChunkInput:
        """The same scan with what a task knows of reading."""
        return replace(
            self,
            storage_options=dict(storage_options),
            memory_bytes=memory_bytes,
            checks=checks,
        )

    def prefixes(self) -> Iterator[ChunkInput]:
        """The first step, the first two, the first four, and so on: twice the work at most.

        The steps do not overlap in time, so rows that are found early come before all that are not
        read.
        """
        count = 1
        while self.fetch and count < len(self.steps):
            yield self.first(sum(self.steps[:count]))
            count *= 2
        yield self

    def part(self, index: int) -> ChunkInput:
        """The input of one of the parts only."""
        return replace(self, parts=self.parts[index : index + 1])

    def first(self, count: int) -> ChunkInput:
        """The input of the first parts only."""
        return replace(self, parts=self.parts[:count])

    def spread(self) -> ChunkInput:
        """The same rows in as many parts as there can be: files without twins by themselves."""
        parts: list[ChunkPart] = []
        for part in self.parts:
            parts += [replace(part, plain=(file,), base=(), newer=()) for file in part.plain]
            if part.base or part.newer:
                parts.append(replace(part, plain=()))
        return replace(self, parts=tuple(parts))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `from_dict`; how storage is read is not in it: the task's settings say."""
        return {
            "columns": [c.to_list() for c in self.columns],
            "hidden": [c.to_list() for c in self.hidden],
            "parts": [_part_to_dict(part) for part in self.parts],
            "version": self.version,
            "marker": self.marker,
            "fetch": self.fetch,
            "steps": list(self.steps),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ChunkInput:
        """The input that `to_dict` described."""
        return cls(
            columns=tuple(LeafColumn.from_list(c) for c in values["columns"]),
            hidden=tuple(LeafColumn.from_list(c) for c in values["hidden"]),
            parts=tuple(_part_from_dict(part) for part in values["parts"]),
            version=values["version"],
            marker=values["marker"],
            fetch=values["fetch"],
            steps=tuple(values["steps"]),
        )


_LAYERS = ("plain", "base", "newer")


def _part_to_dict(part: ChunkPart) -> dict[str, Any]:
    return {
        **{name: [file.to_list() for file in getattr(part, name)] for name in _LAYERS},
        "are_newer_distinct": part.are_newer_distinct,
        "key": list(part.key),
        "where": part.where,
        "shares": list(part.shares),
    }


def _part_from_dict(values: Mapping[str, Any]) -> ChunkPart:
    return ChunkPart(
        **{name: tuple(map(ChunkRows.from_list, values[name])) for name in _LAYERS},
        are_newer_distinct=values["are_newer_distinct"],
        key=tuple(values["key"]),
        where=values["where"],
        shares=(values["shares"][0], values["shares"][1], values["shares"][2]),
    )
