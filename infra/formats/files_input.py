"""What a task reads of files for which Spark has a reader of its own.

A format says how the rows of a file become record batches (`raw_rows`) and how these become values
(`select`). Columns of partition folders, and those that a file lacks, are added here. What a task
cannot read as Spark does raises, and its stage runs on Spark, which reads the same files.

Worker code.
"""

from __future__ import annotations

import functools
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, Self

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.integrity.local import DEFAULT_CHECKS, FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import RowsInput
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, leaf_schema
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType, Field, parse_column_type

_MEMORY_BYTES = 512 << 20


@dataclass(frozen=True, kw_only=True)
class FilesInput(RowsInput):
    """Rows of files.

    Args:
        columns: Columns to give.
        units: What is read.
        fields: All columns of the table in its order, then those of partition folders.
        time_zone: Session time zone, in which moments without a zone are read.
        native_reason: Why only Spark may read the files, or None.
    """

    reader: ClassVar[str]
    """What Spark calls the format."""

    columns: tuple[LeafColumn, ...]
    units: tuple[DataFile, ...]
    fields: tuple[Field, ...]
    time_zone: str
    native_reason: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    checks: FileChecks = field(default=DEFAULT_CHECKS, compare=False)

    @abstractmethod
    def raw_columns(self, sources: Sequence[LeafColumn]) -> tuple[LeafColumn, ...]:
        """Return the columns of `raw_rows`.

        Args:
            sources: Columns that come from the files.
        """

    @abstractmethod
    def raw_rows(
        self, unit: DataFile, sources: Sequence[LeafColumn], options: StorageOptions
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, or of a range of it, with the names of `raw_columns`."""

    @abstractmethod
    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the SQL of the columns' values, and a FROM clause over `in_0`."""

    @property
    def reader_options(self) -> tuple[tuple[str, str], ...]:
        """Options of Spark's reader."""
        return ()

    def is_made(self, name: str) -> bool:
        """Whether a column is NULL in all rows that a task reads, without being read."""
        return False

    def spark_files(self) -> SparkFiles:
        """Return how Spark reads these files; each whole, as it divides them by itself."""
        files = {unit.uri: replace(unit, rows=None) for unit in self.units}
        return SparkFiles(
            columns=self.columns,
            reader=self.reader,
            options=self.reader_options,
            fields=self.fields,
            files=tuple(files.values()),
        )

    def with_files(self, change: Callable[[DataFile], DataFile]) -> Self:
        """Return the scan with other files in place of its own."""
        return replace(self, units=tuple(map(change, self.units)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows.

        Raises:
            QueryError: Only Spark can read them.
        """
        if self.native_reason is not None:
            raise QueryError(self.native_reason)
        for _, units in groupby(self.units, lambda unit: (unit.constants, unit.lacks)):
            yield from self._read(tuple(units))

    def _read(self, units: tuple[DataFile, ...]) -> Iterator[pa.RecordBatch]:
        constants = dict.fromkeys(units[0].lacks) | dict(units[0].constants)
        sources = [c for c in self.columns if c.source.lower() not in constants]
        sources = [c for c in sources if not self.is_made(c.source)]
        others = [c for c in self.columns if c not in sources]
        values, relation = self.select(sources)
        items = [values] if values else []
        items += [_constant(constants.get(c.source.lower()), c.dtype, c.name) for c in others]
        sql = f"SELECT {', '.join(items) or 'TRUE AS no_column'} FROM {relation}"
        read = functools.partial(self._raw_rows, units, sources)
        schema = leaf_schema((*sources, *others))
        if not self.columns:
            schema = pa.schema([("no_column", pa.bool_())])
        fragment = Fragment.of(sql, [ArrowInput(self.raw_columns(sources), read)], schema)
        resources = Resources(
            time_zone=self.time_zone,
            memory_bytes=_MEMORY_BYTES,
            spill_dir=self.checks.folder or tempfile.gettempdir(),
        )
        with task_engine(DEFAULT_ENGINE).run(fragment, resources) as batches:
            yield from batches

    def _raw_rows(
        self, units: Sequence[DataFile], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        options = StorageOptions.from_dict(dict(self.storage_options))
        for unit in units:
            yield from self.raw_rows(unit, sources, options)

    @property
    def num_rows(self) -> int:
        """Rows that are read; estimated, where the files do not tell."""
        return sum(unit.read_rows for unit in self.units)

    @property
    def num_bytes(self) -> int:
        """About how many stored bytes are read."""
        return sum(unit.read_bytes for unit in self.units)

    @property
    def file_rows(self) -> tuple[DataFile, ...]:
        """The files, which must be the same after they are read."""
        return self.units

    @property
    def num_parts(self) -> int:
        """How many units there are."""
        return len(self.units)

    def part(self, index: int) -> Self:
        """Return one unit only."""
        return replace(self, units=self.units[index : index + 1])

    def reached(
        self, storage_options: Mapping[str, Any], memory_bytes: int, checks: FileChecks
    ) -> Self:
        """Return the same scan with what a task knows of reading."""
        return replace(self, storage_options=storage_options, checks=checks)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return {
            "columns": [column.to_list() for column in self.columns],
            "units": [unit.to_list() for unit in self.units],
            "fields": [[f.name, str(f.dtype)] for f in self.fields],
            "time_zone": self.time_zone,
            "native_reason": self.native_reason,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scan that `to_dict` described."""
        return cls(**cls.arguments(values))

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the scan that `to_dict` described."""
        return {
            "columns": tuple(map(LeafColumn.from_list, values["columns"])),
            "units": tuple(map(DataFile.from_list, values["units"])),
            "fields": tuple(
                Field(name, parse_column_type(text)) for name, text in values["fields"]
            ),
            "time_zone": values["time_zone"],
            "native_reason": values["native_reason"],
        }


def _constant(text: str | None, dtype: DataType, name: str) -> str:
    """A value that all rows have."""
    value = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
    return f"CAST({value} AS {duckdb_type(dtype)}) AS {duckdb_name(name)}"
