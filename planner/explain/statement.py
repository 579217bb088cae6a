"""`EXPLAIN [EXTENDED | CODEGEN | COST | FORMATTED] SELECT …` as a statement.

In: SQL text. Out: what is to be explained and how, or None for any other statement. The text of the
query keeps its length and its lines, so places in messages are those of the whole statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal as OneOf

from planner.errors import UnsupportedSqlError

ExplainMode = OneOf["simple", "extended", "cost", "formatted"]

_LEAD = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*"
_EXPLAIN = re.compile(rf"{_LEAD}(?P<explain>EXPLAIN)\b", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(rf"{_LEAD}(?P<word>[A-Za-z]+)\b", re.DOTALL)
_MODES: dict[str, ExplainMode] = {"EXTENDED": "extended", "COST": "cost", "FORMATTED": "formatted"}
_REFUSED = {
    "CODEGEN": "shows Java code that Spark generates, which stages do not have; "
    "EXPLAIN FORMATTED shows the SQL of each stage",
    "ANALYZE": "is no statement of Spark; `stagecoach explain --analyze` runs a query and "
    "compares it with its plan",
}


@dataclass(frozen=True)
class ExplainStatement:
    """An EXPLAIN.

    Args:
        mode: What is asked for; `simple` without a word.
        sql: The text with EXPLAIN and its word blanked out.
    """

    mode: ExplainMode
    sql: str


def split_explain(sql: str) -> ExplainStatement | None:
    """The EXPLAIN that the text is, or None if it is something else.

    Raises:
        UnsupportedSqlError: For EXPLAIN CODEGEN, with the place of the word.
    """
    found = _EXPLAIN.match(sql)
    if found is None:
        return None
    sql = _blanked(sql, *found.span("explain"))
    word = _WORD.match(sql, found.end())
    name = word["word"].upper() if word is not None else ""
    if word is None or name not in {**_MODES, **_REFUSED}:
        return ExplainStatement("simple", sql)
    start, end = word.span("word")
    if name in _REFUSED:
        line = sql.count("\n", 0, start) + 1
        column = start - sql.rfind("\n", 0, start)
        raise UnsupportedSqlError(f"EXPLAIN {name} {_REFUSED[name]}", line=line, column=column)
    return ExplainStatement(_MODES[name], _blanked(sql, start, end))


def _blanked(sql: str, start: int, end: int) -> str:
    return sql[:start] + " " * (end - start) + sql[end:]
