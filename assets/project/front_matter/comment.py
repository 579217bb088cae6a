"""The leading comment of a SQL text, without its comment signs.

Each line knows where it was, so that a place in the comment's YAML is a place in the file.
"""

import re
from dataclasses import dataclass

from stagecoach.assets.project.front_matter.places import Place

_FENCE = "---"
_LINE_PREFIX = re.compile(r"[ \t]*-- ?")
# In a block comment, the `*/15` of a cron expression ends the comment.
_CUT_BY_CRON = re.compile(r"\*/\d")


@dataclass(frozen=True)
class CommentLine:
    """A line of a comment.

    Args:
        text: What is left without the signs of a comment.
        line: 1-based line in the file.
        offset: How many characters of that line come before `text`.
    """

    text: str
    line: int
    offset: int


@dataclass(frozen=True)
class Comment:
    """The leading comment of a SQL text; without lines where there is none.

    Args:
        lines: Its lines; without the fence, if it has one.
        fenced: Whether it begins with a line `---`: then it must be front matter.
        cut_at: Where a `*/` that looks like a part of a cron expression ends it, if so.
    """

    lines: tuple[CommentLine, ...] = ()
    fenced: bool = False
    cut_at: Place | None = None

    @property
    def text(self) -> str:
        """Its text, as YAML reads it."""
        return "\n".join(line.text for line in self.lines)

    def place(self, row: int, column: int) -> Place:
        """Line and column in the file of a 0-based row and column in `text`."""
        if not self.lines:
            return (1, 1)
        if row >= len(self.lines):
            last = self.lines[-1]
            return (last.line, last.offset + len(last.text) + 1)
        line = self.lines[row]
        return (line.line, line.offset + column + 1)


def leading_comment(sql: str) -> Comment:
    """The comment with which the text begins: a block, or lines that start with `--`."""
    start = len(sql) - len(sql.lstrip())
    if sql.startswith("/*", start):
        end = sql.find("*/", start + 2)
        if end < 0:
            return Comment()
        cut = _place_of(sql, end) if _CUT_BY_CRON.match(sql, end) else None
        return _without_fence(_block_lines(sql, start + 2, end), cut)
    if sql.startswith("--", start):
        return _without_fence(_dash_lines(sql, start), None)
    return Comment()


def _place_of(sql: str, offset: int) -> Place:
    return (sql.count("\n", 0, offset) + 1, offset - sql.rfind("\n", 0, offset))


def _block_lines(sql: str, start: int, end: int) -> list[CommentLine]:
    first_line, first_column = _place_of(sql, start)
    return [
        CommentLine(text.rstrip("\r"), first_line + i, 0 if i else first_column - 1)
        for i, text in enumerate(sql[start:end].split("\n"))
    ]


def _dash_lines(sql: str, start: int) -> list[CommentLine]:
    begin = sql.rfind("\n", 0, start) + 1
    number = sql.count("\n", 0, begin) + 1
    lines: list[CommentLine] = []
    for i, text in enumerate(sql[begin:].split("\n")):
        prefix = _LINE_PREFIX.match(text)
        if prefix is None:
            break
        lines.append(CommentLine(text[prefix.end() :].rstrip("\r"), number + i, prefix.end()))
    return lines


def _without_fence(lines: list[CommentLine], cut_at: Place | None) -> Comment:
    first = next((i for i, line in enumerate(lines) if line.text.strip()), None)
    if first is None or lines[first].text.strip() != _FENCE:
        return Comment(tuple(lines), False, cut_at)
    rest = lines[first + 1 :]
    end = next((i for i, line in enumerate(rest) if line.text.rstrip() == _FENCE), len(rest))
    return Comment(tuple(rest[:end]), True, cut_at)
