"""What a task reads of text files: blocks of lines, then texts, then values of the declared types.

DuckDB turns texts into values, by the same expressions as for `from_csv` and `from_json`. A text
that these cannot read as Spark does raises, and its stage runs on Spark.

Worker code.
"""

from __future__ import annotations

import functools
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from stagecoach.infra.engines.protocol import Fragment, Resources
from stagecoach.infra.engines.registry import DEFAULT_ENGINE, task_engine
from stagecoach.infra.errors import QueryError
from stagecoach.infra.formats.text_files.options import FileOptions
from stagecoach.infra.integrity.local import DEFAULT_CHECKS, FileChecks
from stagecoach.infra.reading.data_file import DataFile
from stagecoach.infra.reading.format_input import RowsInput
from stagecoach.infra.reading.inputs import ArrowInput, LeafColumn, leaf_schema
from stagecoach.infra.reading.line_blocks import byte_range, line_blocks
from stagecoach.infra.reading.spark_files import SparkFiles
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import STRING, Field, parse_column_type

if TYPE_CHECKING:
    from stagecoach.planner.types import DataType

_MEMORY_BYTES = 512 << 20


@dataclass(frozen=True, kw_only=True)
class TextInput(RowsInput):
    """Rows of text files. A range of estimated rows stands for the same share of the bytes.

    Args:
        columns: Columns to give.
        units: What is read.
        fields: All columns of the table in its order, then those of partition folders.
        options: The table's options.
        time_zone: Session time zone, in which moments without a zone are read.
        native_reason: Why only Spark may read the files, or None.
    """

    reader: ClassVar[str]
    """What Spark calls the format."""

    columns: tuple[LeafColumn, ...]
    units: tuple[DataFile, ...]
    fields: tuple[Field, ...]
    options: FileOptions
    time_zone: str
    native_reason: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    checks: FileChecks = field(default=DEFAULT_CHECKS, compare=False)

    @abstractmethod
    def texts(
        self, blocks: Iterator[bytes], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the texts of blocks of lines, with the names of `raw_columns`.

        Args:
            blocks: Whole lines, from the beginning of a file or of a range.
            sources: Columns that come from the lines.
        """

    @abstractmethod
    def raw_columns(self, sources: Sequence[LeafColumn]) -> tuple[str, ...]:
        """Return the names of the texts from which these columns are made."""

    @abstractmethod
    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the SQL of the columns' values, and a FROM clause over `in_0`."""

    @property
    def whole_query_reason(self) -> str | None:
        """Why the rows depend on the query that reads them, if they are not plain; None else.

        Spark looks only at the fields that a query needs. Which records are corrupt, and so which
        are dropped or end the query, depends on that.
        """
        if self.options.mode != "PERMISSIVE":
            return f"which records are corrupt for mode {self.options.mode} depends on the query"
        if self.wants_corrupt:
            return f"what {self.options.corrupt_column} holds depends on the query"
        return None

    @property
    def wants_corrupt(self) -> bool:
        """Whether the column with the text of corrupt records is read."""
        return any(self.is_corrupt_column(c.source) for c in self.columns)

    def is_corrupt_column(self, name: str) -> bool:
        """Whether a column gets the text of corrupt records."""
        return name == self.options.corrupt_column

    @property
    def is_strict(self) -> bool:
        """Whether a value that cannot be read is more than a NULL."""
        return self.whole_query_reason is not None

    def spark_files(self) -> SparkFiles:
        """Return how Spark reads these files; each whole, as it divides them by itself."""
        files = {unit.uri: replace(unit, rows=None) for unit in self.units}
        return SparkFiles(
            columns=self.columns,
            reader=self.reader,
            options=self.options.given,
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
        for _, units in groupby(self.units, lambda unit: unit.constants):
            yield from self._read(tuple(units))

    def _read(self, units: tuple[DataFile, ...]) -> Iterator[pa.RecordBatch]:
        constants = dict(units[0].constants)
        sources = [c for c in self.columns if c.source.lower() not in constants]
        sources = [c for c in sources if not self.is_corrupt_column(c.source)]
        names = self.raw_columns(sources)
        raw = tuple(LeafColumn(name, "", STRING) for name in names)
        values, relation = self.select(sources)
        items = [values] if values else []
        for column in (c for c in self.columns if c not in sources):
            text = constants.get(column.source.lower())
            items.append(_constant(text, column.dtype, column.name))
        sql = f"SELECT {', '.join(items) or 'TRUE AS no_column'} FROM {relation}"
        read = functools.partial(self._texts, units, sources)
        others = [c for c in self.columns if c not in sources]
        schema = leaf_schema((*sources, *others))
        if not self.columns:
            schema = pa.schema([("no_column", pa.bool_())])
        fragment = Fragment.of(sql, [ArrowInput(raw, read)], schema)
        resources = Resources(
            time_zone=self.time_zone,
            memory_bytes=_MEMORY_BYTES,
            spill_dir=self.checks.folder or tempfile.gettempdir(),
        )
        with task_engine(DEFAULT_ENGINE).run(fragment, resources) as batches:
            yield from batches

    def _texts(
        self, units: Sequence[DataFile], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        options = StorageOptions.from_dict(dict(self.storage_options))
        for unit in units:
            blocks = line_blocks(unit, options)
            if byte_range(unit)[0] == 0:
                blocks = self.without_header(blocks)
            yield from self.texts(blocks, sources)

    def without_header(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Return the lines of a file from its beginning without what is no row."""
        return blocks

    @property
    def num_rows(self) -> int:
        """Rows that are read, estimated."""
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
            "options": [list(pair) for pair in self.options.given],
            "time_zone": self.time_zone,
            "native_reason": self.native_reason,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the scan that `to_dict` described."""
        return cls(
            columns=tuple(map(LeafColumn.from_list, values["columns"])),
            units=tuple(map(DataFile.from_list, values["units"])),
            fields=tuple(Field(name, parse_column_type(text)) for name, text in values["fields"]),
            options=FileOptions(tuple((name, value) for name, value in values["options"])),
            time_zone=values["time_zone"],
            native_reason=values["native_reason"],
        )


def _constant(text: str | None, dtype: DataType, name: str) -> str:
    """A value that all rows have, NULL for the text of corrupt records: there are none."""
    value = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
    return f"CAST({value} AS {duckdb_type(dtype)}) AS {duckdb_name(name)}"
