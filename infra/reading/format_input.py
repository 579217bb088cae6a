"""Scans that a table format reads by itself, as engines and tasks see them.

Engines read Parquet files and record batches. A format whose rows are neither says how its rows are
had, in one of two ways: `RowsInput` gives record batches, which suits any engine; `SqlInput` makes
a relation in DuckDB, which can then push filters into it and spill. Spark reads the latter through
DuckDB.

A scan travels to executors as plain data with the path of its class, so that an executor needs no
registry of formats.

Worker code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.inputs import LeafColumn, PlainInput, ScanInput
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.planner.registry import load

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from stagecoach.infra.integrity.local import FileChecks


class FormatInput(ABC):
    """A scan bound to what a task reads of it."""

    columns: tuple[LeafColumn, ...]
    fetch: int = 0
    """How many rows the fragment wants, if it wants the first ones in the order of `prefixes`."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Stored rows that are read."""

    @property
    @abstractmethod
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""

    @property
    def file_rows(self) -> tuple[DataFile, ...]:
        """The files that are read, which must not change meanwhile; a file may occur twice."""
        return ()

    @property
    def metrics(self) -> Mapping[str, int]:
        """What else the record of the stage tells of the scan; summed over its tasks."""
        return {}

    @property
    @abstractmethod
    def num_parts(self) -> int:
        """How many parts can be read by themselves; 0 if there is nothing to read."""

    @abstractmethod
    def part(self, index: int) -> Self:
        """Return one part only."""

    def spread(self) -> Self:
        """Return the same rows in as many parts as there can be."""
        return self

    def spark_files(self) -> SparkFiles | None:
        """Return how Spark reads the same rows by itself; None if tasks feed them to it."""
        return None

    def with_files(self, change: Callable[[DataFile], DataFile]) -> Self:
        """Return the scan with other files in place of its own, for a scan with `spark_files`."""
        raise NotImplementedError(f"{type(self).__name__} has no files that Spark reads")

    @property
    def whole_query_reason(self) -> str | None:
        """Why Spark must read the rows in the whole query and not in a stage; None if it need not.

        Asked only where Spark reads the scan.
        """
        return None

    def prefixes(self) -> Iterator[Self]:
        """Yield larger and larger beginnings of the scan, for a fragment that wants first rows.

        The rows of a prefix come before all other rows in the order that the fragment asks for.
        """
        yield self

    def reached(
        self, storage_options: Mapping[str, Any], memory_bytes: int, checks: FileChecks
    ) -> Self:
        """Return the same scan with what a task knows of reading.

        Args:
            storage_options: How to reach files, for `StorageOptions.from_dict`.
            memory_bytes: Bound of the bytes that are fetched and not yet decoded.
            checks: What is checked of files before they are read.
        """
        return self

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`, without anything that `reached` gives."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scan that `to_dict` described."""


class RowsInput(FormatInput):
    """A scan that gives record batches."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows: the names of `columns`, and types that can be cast to theirs."""


@dataclass(frozen=True)
class UnitsInput(RowsInput):
    """A scan that gives record batches of units such as files, each read by itself.

    A format derives a class with `read`.

    Args:
        columns: Columns to give.
        units: What is read.
        notes: What else a reader must know of each unit; none, or one for each.
    """

    columns: tuple[LeafColumn, ...]
    units: tuple[DataFile, ...]
    notes: tuple[str, ...] = ()

    @abstractmethod
    def read(self, unit: DataFile, note: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a unit from its `row_start` to its `row_end`, in record batches.

        Rows that `unit.deletes` tells are left out, and columns with a `field_id` are found by it.
        """

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all units."""
        for unit, note in zip(self.units, self.notes or ("",) * len(self.units), strict=True):
            yield from self.read(unit, note)

    @property
    def num_rows(self) -> int:
        """Rows that are read."""
        return sum(unit.read_rows for unit in self.units)

    @property
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""
        return sum(unit.read_bytes for unit in self.units)

    @property
    def file_rows(self) -> tuple[DataFile, ...]:
        """The units that have a version, which must still be the same after they are read."""
        return tuple(unit for unit in self.units if unit.version)

    @property
    def num_parts(self) -> int:
        """How many units there are."""
        return len(self.units)

    def part(self, index: int) -> Self:
        """Return one unit only."""
        notes = self.notes[index : index + 1]
        return replace(self, units=self.units[index : index + 1], notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {
            "columns": [column.to_list() for column in self.columns],
            "units": [unit.to_list() for unit in self.units],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scan that `to_dict` described."""
        columns = tuple(map(LeafColumn.from_list, values["columns"]))
        units = tuple(DataFile.from_list(unit) for unit in values["units"])
        return cls(columns, units, tuple(values["notes"]))


class SqlInput(FormatInput):
    """A scan that is a relation of DuckDB."""

    @abstractmethod
    def bind(
        self,
        cursor: duckdb.DuckDBPyConnection,
        name: str,
        memory_bytes: int,
        input_errors: list[BaseException],
    ) -> None:
        """Make `name` a relation of the cursor with the names and types of `columns`.

        Args:
            cursor: Whose relation it is.
            name: Name of the relation.
            memory_bytes: Memory of the task.
            input_errors: Gets what reading a file raises, which DuckDB passes on as text only.
        """


EngineInput = PlainInput | SqlInput
"""What DuckDB reads; rows of a `RowsInput` come as an `ArrowInput`."""


def input_to_dict(spec: FormatInput) -> dict[str, Any]:
    """Return plain data for `input_from_dict`."""
    cls = type(spec)
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "values": spec.to_dict()}


def input_from_dict(values: Mapping[str, Any]) -> FormatInput:
    """Return the scan that `input_to_dict` described."""
    cls = load(values["class"])
    if not (isinstance(cls, type) and issubclass(cls, FormatInput)):
        raise TypeError(f"{values['class']} is not a FormatInput")
    return cls.from_dict(values["values"])


TableInput = ScanInput | FormatInput
"""What a task reads of a table."""
