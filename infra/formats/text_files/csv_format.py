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
from stagecoach.infra.formats.text_files.csv_input import CsvInput, separator_of
from stagecoach.infra.formats.text_files.options import CSV_OPTIONS, FileOptions
from stagecoach.infra.formats.text_files.table_format import TextFormat
from stagecoach.planner.errors import CatalogError
from stagecoach.planner.functions.csv_options import MOST_COLUMNS
from stagecoach.planner.functions.spell_csv import is_read_field
from stagecoach.planner.types import Field

_NATIVE = (
    "header", "mode", "columnNameOfCorruptRecord", "sep", "delimiter", "quote", "escape",
    "nullValue", "encoding", "charset", "enforceSchema",
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
    encoding = options.get("encoding") or options.get("charset") or "UTF-8"
    if encoding.upper() not in ("UTF-8", "UTF8"):
        return f"the encoding {encoding}"
    return None if options.is_on("enforceSchema", default=True) else "enforceSchema off"


FORMAT = CsvFormat()
