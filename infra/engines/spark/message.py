"""Reads what Spark says when it refuses a query. Needs no pyspark."""

from __future__ import annotations

import re

_STACK_LINE = re.compile(r"^\s*(at [\w.$/<>]+\(|Caused by: |\.\.\. \d+ more|JVM stacktrace:)")
# Errors of analysis end so; the plan that they are about follows.
_END = re.compile(r"(SQLSTATE: \w{5}(; line \d+,? pos \d+)?);\n")
_PLAN_LINE = re.compile(r"^(;?\s*'?[A-Z]\w+.*\[|[+:]- )")
_POSITION = re.compile(r" ?\(line (\d+), pos (\d+)\)|;? ?\bline (\d+),? pos (\d+);?")
_PLACE = re.compile(r"== SQL.*?\(line (\d+), position (\d+)\) ==")


def clean_message(text: str) -> str:
    """Spark's message without stack trace, plan and SQL excerpt; we draw the excerpt."""
    if end := _END.search(text):
        text = text[: end.end(1)]
    kept: list[str] = []
    for line in text.splitlines():
        if _STACK_LINE.match(line):
            break
        if line.startswith("== ") and kept:
            break
        # The plan that Spark appends to analysis errors is not for the author of the SQL.
        if _PLAN_LINE.match(line) and kept:
            break
        kept.append(_POSITION.sub("", line).rstrip())
    while kept and not kept[-1].strip(";"):
        kept.pop()
    return "\n".join(kept).rstrip(";")


def place_in(text: str) -> tuple[int, int] | None:
    """The 1-based line and column that Spark's message names, or None."""
    if match := _PLACE.search(text):
        return int(match[1]), int(match[2])
    if match := _POSITION.search(text):
        # This form counts positions from 0, the other one from 1.
        return int(match[1] or match[3]), int(match[2] or match[4]) + 1
    return None
