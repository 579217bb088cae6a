"""How many rows a text file has, counted by its lines alone.

Spark splits a file into lines before it looks at quotes, and makes a row of each, also of one that
is corrupt. It leaves out lines of nothing but blanks and control characters, but for plain text,
and the header of each CSV file. So rows can be counted without knowing what fields a line has.
Where a row may be more or less than a line, nothing is counted, or the count is not exact:

    mode DROPMALFORMED                       which rows are dropped depends on the query
    CSV with multiLine                       a row has one line or more
    JSON with multiLine, wholetext           not counted
    lineSep, encoding, comment, and others   not counted
    a line of JSON that is not an object     not counted
    NUL, a lone carriage return, not UTF-8   not counted
"""

from __future__ import annotations

from dataclasses import dataclass

from stagecoach.infra.formats.text_files.csv_blocks import UnclearTextError, check_lines


@dataclass(frozen=True, kw_only=True)
class LineRule:
    """Which lines are rows.

    Args:
        blanks: A line of nothing but these bytes is none; empty where each line is a row.
        has_header: Whether the first line of a file that is not blank is none.
        opening: What every other line must begin with, behind blanks, to be one row.
        is_exact: Whether there are as many rows as such lines, else there may be fewer.
    """

    blanks: bytes
    has_header: bool = False
    opening: bytes = b""
    is_exact: bool = True

    def count(self, block: bytes) -> int:
        """Return how many lines of a block are rows, a header included.

        Raises:
            UnclearTextError: It is not known.
        """
        check_lines(block)
        if not self.blanks:
            return block.count(b"\n") + (not block.endswith(b"\n"))
        lines = [text for line in block.split(b"\n") if (text := line.strip(self.blanks))]
        if self.opening and not all(line.startswith(self.opening) for line in lines):
            raise UnclearTextError("a line may be another number of rows than one")
        return len(lines)
