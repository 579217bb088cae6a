"""JSON files as a table format, an object on each line.

A task reads such files with the options `mode` and `columnNameOfCorruptRecord`, and values of the
types that it reads for `from_json`. Spark reads all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stagecoach.infra.formats.text_files.line_inputs import JsonInput
from stagecoach.infra.formats.text_files.line_rules import LineRule
from stagecoach.infra.formats.text_files.options import JSON_OPTIONS, FileOptions
from stagecoach.infra.formats.text_files.table_format import TextFormat
from stagecoach.planner.functions.spell_from_json import is_read_value
from stagecoach.planner.types import Field

_NATIVE = ("mode", "columnNameOfCorruptRecord")
# What else decides on values and not on lines.
_COUNTED = (
    *_NATIVE, "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "timeZone",
    "locale", "enableDateTimeParsingFallback",
)  # fmt: skip
_BLANKS = b" \t\r"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAME_BYTES = 4
"""Quotes, a colon and a blank."""


class JsonFormat(TextFormat):
    """JSON files."""

    name = "json"
    file_kind = "json"
    known_options = JSON_OPTIONS
    input_class = JsonInput

    def native_reason(self, fields: Sequence[Field], options: FileOptions) -> str | None:
        """Return why only Spark may read the files."""
        if (name := options.besides(_NATIVE)) is not None:
            return f"only Spark reads JSON with the option {name}"
        stored = [f for f in fields if f.name != options.corrupt_column]
        odd_name = next((f.name for f in stored if not _NAME.fullmatch(f.name)), None)
        if odd_name is not None:
            return f"only Spark reads members of JSON with names such as {odd_name!r}"
        odd = next((f.dtype for f in stored if not is_read_value(f.dtype)), None)
        return f"only Spark reads {odd} from JSON" if odd else None

    def line_rule(self, options: FileOptions) -> LineRule | None:
        """Return that each object is a row, well-formed or not."""
        if options.besides(_COUNTED) is not None:
            return None
        return LineRule(blanks=_BLANKS, opening=b"{", is_exact=options.mode != "DROPMALFORMED")

    def row_bytes(self, fields: Sequence[Field]) -> int:
        """Estimate how many bytes a row has, with the names of its members."""
        names = sum(len(f.name) + _NAME_BYTES for f in fields)
        return super().row_bytes(fields) + names


FORMAT = JsonFormat()
