"""Plain text files as a table format: a row for each line, with one column."""

from __future__ import annotations

from collections.abc import Sequence

from stagecoach.infra.formats.column_declaration import DeclaredColumns
from stagecoach.infra.formats.text_files.line_inputs import LinesInput
from stagecoach.infra.formats.text_files.line_rules import LineRule
from stagecoach.infra.formats.text_files.options import TEXT_OPTIONS, FileOptions
from stagecoach.infra.formats.text_files.table_format import TextFormat
from stagecoach.planner.types import STRING, Field


class LinesFormat(TextFormat):
    """Plain text files."""

    name = "text"
    file_kind = "text"
    known_options = TEXT_OPTIONS
    default_columns = DeclaredColumns((Field("value", STRING),), {})
    input_class = LinesInput

    def native_reason(self, fields: Sequence[Field], options: FileOptions) -> str | None:
        """Return why only Spark may read the files."""
        name = options.besides(())
        return None if name is None else f"only Spark reads text with the option {name}"

    def line_rule(self, options: FileOptions) -> LineRule | None:
        """Return that each line is a row."""
        return None if options.besides(()) is not None else LineRule(blanks=b"")

    def row_bytes(self, fields: Sequence[Field]) -> int:
        """Estimate how many bytes a line has."""
        return 80


FORMAT = LinesFormat()
