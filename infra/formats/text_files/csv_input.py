"""What a task reads of CSV files.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stagecoach.infra.formats.text_files.csv_blocks import (
    BLANKS,
    CsvRules,
    UnclearTextError,
    check_lines,
    split_fields,
)
from stagecoach.infra.formats.text_files.inputs import TextInput
from stagecoach.infra.formats.text_files.options import FileOptions
from stagecoach.planner.functions.spell_csv import field_value
from stagecoach.planner.text.quoting import duckdb_name, duckdb_text
from stagecoach.planner.text.type_names import duckdb_type

if TYPE_CHECKING:
    import pyarrow as pa

    from stagecoach.infra.reading.inputs import LeafColumn
    from stagecoach.planner.types import Field


class CsvInput(TextInput):
    """Rows of CSV files."""

    reader = "csv"

    def texts(
        self, blocks: Iterator[bytes], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the fields of blocks of lines."""
        rules = rules_of(self.options, len(self.stored_fields))
        wanted, names = self._wanted(sources), self.text_names(sources)
        for block in blocks:
            yield from split_fields(block, rules, wanted).rename_columns(names).to_batches()

    def text_names(self, sources: Sequence[LeafColumn]) -> tuple[str, ...]:
        """Return `r0` for the first field, and so on."""
        return tuple(f"r{i}" for i in self._wanted(sources))

    def _wanted(self, sources: Sequence[LeafColumn]) -> list[int]:
        """The fields that are needed, at least one."""
        return sorted({self._places[c.source.lower()] for c in sources} or {0})

    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the values of fields; an empty one is NULL."""
        places, null = self._places, self.options.get("nullValue")
        texts: dict[str, None] = {}
        values = []
        for column in sources:
            name = f"r{places[column.source.lower()]}"
            text = f"nullif({name}, '')"
            if null:
                text = f"nullif({text}, {duckdb_text(null)})"
            texts[f"{text} AS t_{name}"] = None
            value = field_value(f"t_{name}", column.dtype).format()
            if self.is_strict and column.dtype.kind != "string":
                unclear = f"CAST(error('CORRUPT_RECORD') AS {duckdb_type(column.dtype)})"
                value = (
                    f"CASE WHEN t_{name} IS NULL THEN NULL ELSE coalesce({value}, {unclear}) END"
                )
            values.append(f"{value} AS {duckdb_name(column.name)}")
        return ", ".join(values), f"(SELECT {', '.join(texts) or 'r0'} FROM in_0)"

    def without_header(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Leave out the first line that is not blank, if it is a header."""
        if not self.options.is_on("header"):
            return blocks
        return _without_first_line(blocks)

    @property
    def stored_fields(self) -> Sequence[Field]:
        """The columns that are in the lines."""
        folders = {name for unit in self.units for name, _ in unit.constants}
        return [
            f for f in self.fields if f.name.lower() not in folders and not self.is_made(f.name)
        ]

    @property
    def _places(self) -> dict[str, int]:
        return {f.name.lower(): i for i, f in enumerate(self.stored_fields)}


def rules_of(options: FileOptions, num_columns: int) -> CsvRules:
    """Return how the lines of a table are divided into fields."""
    return CsvRules(
        separator=separator_of(options),
        quote=options.get("quote", '"'),
        escape=options.get("escape", "\\"),
        num_columns=num_columns,
        tells_empty=bool(options.get("nullValue")),
    )


def separator_of(options: FileOptions) -> str:
    """Return the text between fields; a tab may be written as Spark lets one write it."""
    found = options.get("sep") or options.get("delimiter") or ","
    return "\t" if found == "\\t" else found


def _without_first_line(blocks: Iterator[bytes]) -> Iterator[bytes]:
    has_lines = False
    for block in blocks:
        has_lines = True
        check_lines(block)  # else its first line may have another end
        start = 0
        while start < len(block):
            end = block.find(b"\n", start) + 1 or len(block)
            line, start = block[start:end], end
            if line.strip(BLANKS):
                yield block[start:]
                yield from blocks
                return
    if has_lines:  # the header may be in another range
        raise UnclearTextError("a range of CSV with a header begins with blank lines only")
