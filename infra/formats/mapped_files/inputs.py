"""What a task reads of a table of mapped files: `MappedInput`, decided by the driver.

Worker code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.mapped_files.columns import MappedColumn, MappedName
from stagecoach.infra.integrity.local import DEFAULT_CHECKS, FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import SqlInput
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.reading.row_bounds import BoundsTest
from stagecoach.infra.reading.row_groups import DEFAULT_MEMORY_BYTES

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, kw_only=True)
class MappedInput(SqlInput):
    """A scan of a table of mapped files.

    Args:
        columns: Columns to give.
        trees: The same columns with the ids of their members.
        keys: Columns that equality deletes of these files name.
        names: Which columns the names of files stand for.
        by_names: Whether columns of all files go by `names`; else of files without field ids.
        files: What to read of which file. Their `constants` go by field ids.
        test: What row groups of files that are not local must pass for a row of theirs to be
            needed, its columns by their positions here; None for nothing.
        storage_options: How to reach files that are not local, for `StorageOptions.from_dict`.
        memory_bytes: Bound of the bytes of such a file that are fetched and not decoded.
        checks: What is checked of files before they are read.
    """

    columns: tuple[LeafColumn, ...]
    trees: tuple[MappedColumn, ...]
    keys: tuple[MappedColumn, ...] = ()
    names: tuple[MappedName, ...] = ()
    by_names: bool = False
    files: tuple[DataFile, ...] = ()
    test: BoundsTest | None = None
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    checks: FileChecks = DEFAULT_CHECKS

    @property
    def num_rows(self) -> int:
        """Rows that are read, deleted ones included."""
        return sum(file.read_rows for file in self.files)

    @property
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""
        return sum(file.read_bytes for file in self.files)

    @property
    def file_rows(self) -> tuple[DataFile, ...]:
        """The data files."""
        return self.files

    @property
    def num_parts(self) -> int:
        """How many files there are."""
        return len(self.files)

    def part(self, index: int) -> MappedInput:
        """Return the input of one file only."""
        return replace(self, files=self.files[index : index + 1])

    def bind(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        memory_bytes: int,
        input_errors: list[BaseException],
    ) -> None:
        """Make `name` a view of the rows that are not deleted."""
        from stagecoach.infra.formats.mapped_files.duckdb_view import bind_files

        bind_files(cursor, name, self, memory_bytes, input_errors)

    def reached(
        self, storage_options: Mapping[str, Any], memory_bytes: int, checks: FileChecks
    ) -> MappedInput:
        """Return the same scan with what a task knows of reading."""
        return replace(
            self, storage_options=dict(storage_options), memory_bytes=memory_bytes, checks=checks
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {
            "columns": [column.to_list() for column in self.columns],
            "trees": [column.to_list() for column in self.trees],
            "keys": [column.to_list() for column in self.keys],
            "names": [mapped.to_list() for mapped in self.names],
            "by_names": self.by_names,
            "files": [file.to_list() for file in self.files],
            "test": None if self.test is None else self.test.to_list(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MappedInput:
        """Return the scan that `to_dict` described."""
        return cls(
            columns=tuple(map(LeafColumn.from_list, values["columns"])),
            trees=tuple(map(MappedColumn.from_list, values["trees"])),
            keys=tuple(map(MappedColumn.from_list, values["keys"])),
            names=tuple(map(MappedName.from_list, values["names"])),
            by_names=values["by_names"],
            files=tuple(map(DataFile.from_list, values["files"])),
            test=None if values["test"] is None else BoundsTest.from_list(values["test"]),
        )
