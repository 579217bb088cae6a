"""What a task reads of files whose lines are texts: plain ones, and JSON.

Worker code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stagecoach.infra.errors import QueryError
from stagecoach.infra.formats.text_files.csv_blocks import check_lines
from stagecoach.infra.formats.text_files.inputs import TextInput
from stagecoach.planner.functions.spell_from_json import json_value
from stagecoach.planner.text.quoting import duckdb_name
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType, Field

if TYPE_CHECKING:
    from stagecoach.infra.reading.inputs import LeafColumn

_LINE = "line"
_MOST_BYTES = (1 << 31) - 1


class LinesInput(TextInput):
    """Lines of text files."""

    reader = "text"

    def texts(
        self, blocks: Iterator[bytes], sources: Sequence[LeafColumn]
    ) -> Iterator[pa.RecordBatch]:
        """Yield lines."""
        for block in blocks:
            check_lines(block)
            yield pa.record_batch({_LINE: split_lines(block)})

    def text_names(self, sources: Sequence[LeafColumn]) -> tuple[str, ...]:
        """Return the name of the line."""
        return (_LINE,)

    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the line."""
        return ", ".join(f"{_LINE} AS {duckdb_name(c.name)}" for c in sources), "in_0"


class JsonInput(LinesInput):
    """Rows of JSON files with an object on each line.

    Spark reads a line of nothing but blanks as no row, a text that is not JSON as a corrupt record,
    and an array as a row for each of its elements: what is not an object is left to it.
    """

    reader = "json"

    def select(self, sources: Sequence[LeafColumn]) -> tuple[str, str]:
        """Return the values of members."""
        members = {c.source: Field(c.source, c.dtype) for c in sources}
        relation = f"(SELECT {_LINE} FROM in_0 WHERE trim({_LINE}, {_BLANKS}) <> '')"
        parsed = f"CAST({_LINE} AS JSON)"
        if not members:
            test = f"json_type({parsed}) IS DISTINCT FROM 'OBJECT'"
            relation += f" WHERE CASE WHEN {test} THEN CAST({_UNCLEAR} AS BOOLEAN) ELSE TRUE END"
            return "", relation
        shape = DataType("struct", fields=tuple(members.values()))
        row = json_value(parsed, shape, 0).format()
        unclear = f"CAST({_UNCLEAR} AS {duckdb_type(shape)})"
        whole = f"CASE WHEN json_type({parsed}) = 'OBJECT' THEN {row} ELSE {unclear} END"
        items = (
            f"struct_extract(o_, {_quoted(c.source)}) AS {duckdb_name(c.name)}" for c in sources
        )
        return ", ".join(items), f"(SELECT {whole} AS o_ FROM {relation})"


_UNCLEAR = "error('JSON_IS_UNCLEAR')"
_BLANKS = "' ' || chr(9) || chr(13)"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def split_lines(block: bytes) -> pa.Array:
    """Return the lines of a block without their ends.

    Raises:
        QueryError: The block is larger than an array can be.
    """
    if len(block) > _MOST_BYTES:
        raise QueryError("a line is too long")
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
    if not len(ends) or ends[-1] != len(block):
        ends = np.append(ends, len(block))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    lines = pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(block)
    )
    return pc.ascii_rtrim(lines, "\r\n")
