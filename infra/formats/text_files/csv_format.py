"""CSV files as a table format.

What a task reads itself, and what Spark reads, by options and types:

    header, mode, columnNameOfCorruptRecord   every value
    sep                                       one of , ; | tab ~ ^ :
    quote                                     " or ', or empty for none
    escape                                    the quote, or backslash
    nullValue                                 any text of printable ASCII without the others
    encoding                                  UTF-8
    enforceSchema                             true
    every other option                        Spark reads
    FLOAT, BINARY                             Spark reads
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stagecoach.infra.formats.column_declaration import DeclaredColumns
from stagecoach.infra.formats.text_files.csv_blocks import BLANKS
from stagecoach.infra.formats.text_files.csv_input import CsvInput, separator_of
from stagecoach.infra.formats.text_files.line_rules import LineRule
from stagecoach.infra.formats.text_files.options import CSV_OPTIONS, FileOptions, is_utf8
from stagecoach.infra.formats.text_files.table_format import TextFormat
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.functions.csv_options import MOST_COLUMNS
from stagecoach.planner.functions.spell_csv import is_read_field
from stagecoach.planner.types import Field

_NATIVE = (
    "header", "mode", "columnNameOfCorruptRecord", "sep", "delimiter", "quote", "escape",
    "nullValue", "encoding", "charset", "enforceSchema",
)  # fmt: skip
# What else decides on values and not on lines.
_COUNTED = (
    *_NATIVE, "multiLine", "dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat",
    "timeZone", "locale", "enableDateTimeParsingFallback", "charToEscapeQuoteEscaping",
    "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "emptyValue", "nanValue", "positiveInf",
    "negativeInf",
)  # fmt: skip
_SEPARATORS = frozenset(",;|\t~^:")
_QUOTES = frozenset(["", '"', "'"])
_PRINTABLE = re.compile(r"[ -~]*")


class CsvFormat(TextFormat):
    """CSV files."""

    name = "csv"
    file_kind = "csv"
    known_options = CSV_OPTIONS
    input_class = CsvInput

    def check(self, place: str, columns: DeclaredColumns, options: FileOptions) -> None:
        """Check that columns are of types that fields have."""
        super().check(place, columns, options)
        for field in columns.fields:
            if not field.dtype.is_atomic:
                raise CatalogError(
                    f"{place}, column {field.name!r}: CSV has no fields of type {field.dtype}; "
                    "declare it as STRING and take it apart in the query"
                )

    def native_reason(self, fields: Sequence[Field], options: FileOptions) -> str | None:
        """Return why only Spark may read the files."""
        if (name := options.besides(_NATIVE)) is not None:
            return f"only Spark reads CSV with the option {name}"
        if (problem := _unproven(options)) is not None:
            return f"only Spark reads CSV with {problem}"
        stored = [f for f in fields if f.name != options.corrupt_column]
        if not 0 < len(stored) <= MOST_COLUMNS:
            return f"only Spark reads CSV with {len(stored)} columns"
        odd = next((f.dtype for f in stored if not is_read_field(f.dtype)), None)
        return f"only Spark reads {odd} from CSV" if odd else None

    def line_rule(self, options: FileOptions) -> LineRule | None:
        """Return that each line is a row, but for blank ones and a header."""
        if options.besides(_COUNTED) is not None or not is_utf8(options):
            return None
        return LineRule(
            blanks=BLANKS,
            has_header=options.is_on("header"),
            is_exact=options.mode != "DROPMALFORMED" and not options.is_on("multiLine"),
        )


def _unproven(options: FileOptions) -> str | None:
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    separator, null = separator_of(options), options.get("nullValue")
    if separator not in _SEPARATORS:
        return f"the separator {separator!r}"
    if quote not in _QUOTES:
        return f"the quote {quote!r}"
    if quote and escape not in (quote, "\\"):
        return f"the escape {escape!r}"
    plain = _PRINTABLE.fullmatch(null) is not None and null.strip() == null
    if not plain or any(sign and sign in null for sign in (separator, quote, escape)):
        return f"nullValue {null!r}"
    if not is_utf8(options):
        return f"the encoding {options.get('encoding') or options.get('charset')}"
    return None if options.is_on("enforceSchema", default=True) else "enforceSchema off"


FORMAT = CsvFormat()
