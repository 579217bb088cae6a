"""What a task reads of text files: blocks of lines, then texts, then values of the declared types.

DuckDB turns texts into values, by the same expressions as for `from_csv` and `from_json`. A text
that these cannot read as Spark does raises, and its stage runs on Spark.

Worker code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stagecoach.infra.formats.files_input import FilesInput
from stagecoach.infra.formats.text_files.options import FileOptions
from stagecoach.infra.reading.inputs import LeafColumn
from stagecoach.infra.reading.line_blocks import byte_range, line_blocks
from stagecoach.planner.types import STRING

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.reading.data_file import DataFile
    from stagecoach.infra.storage.object_store import StorageOptions


@dataclass(frozen=True, kw_only=True)
class TextInput(FilesInput):
    """Rows of text files. A range of estimated rows stands for the same share of the bytes.

    Args:
        options: The table's options.
    """

    options: FileOptions

    @abstractmethod
    def texts(
        self, blocks: Iterator[bytes], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the texts of blocks of lines, with the names of `text_names`.

        Args:
            blocks: Whole lines, from the beginning of a file or of a range.
            sources: Columns that come from the lines.
        """

    @abstractmethod
    def text_names(self, sources: Sequence[LeafColumn]) -> tuple[str, ...]:
        """Return the names of the texts from which these columns are made."""

    def raw_columns(self, sources: Sequence[LeafColumn]) -> tuple[LeafColumn, ...]:
        """Return the texts."""
        return tuple(LeafColumn(name, "", STRING) for name in self.text_names(sources))

    def raw_rows(
        self, unit: DataFile, sources: Sequence[LeafColumn], options: StorageOptions
    ) -> Iterator[pa.RecordBatch]:
        """Yield the texts of a file, or of a range of it."""
        blocks = line_blocks(unit, options)
        if byte_range(unit)[0] == 0:
            blocks = self.without_header(blocks)
        yield from self.texts(blocks, sources)

    @property
    def reader_options(self) -> tuple[tuple[str, str], ...]:
        """The table's options."""
        return self.options.given

    @property
    def whole_query_reason(self) -> str | None:
        """Why the rows depend on the query that reads them, if they are not plain; None else.

        Spark looks only at the fields that a query needs. Which records are corrupt, and so which
        are dropped or end the query, depends on that.
        """
        if self.options.mode != "PERMISSIVE":
            return f"which records are corrupt for mode {self.options.mode} depends on the query"
        if any(self.is_made(c.source) for c in self.columns):
            return f"what {self.options.corrupt_column} holds depends on the query"
        return None

    def is_made(self, name: str) -> bool:
        """Whether a column gets the text of corrupt records: a task reads none."""
        return name == self.options.corrupt_column

    @property
    def is_strict(self) -> bool:
        """Whether a value that cannot be read is more than a NULL."""
        return self.whole_query_reason is not None

    def without_header(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Return the lines of a file from its beginning without what is no row."""
        return blocks

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for `from_dict`."""
        return super().to_dict() | {"options": [list(pair) for pair in self.options.given]}

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the scan that `to_dict` described."""
        options = FileOptions(tuple((name, value) for name, value in values["options"]))
        return super().arguments(values) | {"options": options}
