"""The options of functions of CSV that DuckDB can follow."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagecoach.planner.plan.expressions import Call, Literal

MOST_COLUMNS = 20_480
"""With more columns Spark raises."""

_SEPARATORS = frozenset(",;|\t~^")
_QUOTES = frozenset("\"'")
_ESCAPES = frozenset("\\\"'/")
_NULL_VALUE = re.compile(r"[A-Za-z][A-Za-z_]*|")
# What Spark calls them, in small letters.
_NAMES = {
    "sep": "separator",
    "delimiter": "separator",
    "quote": "quote",
    "escape": "escape",
    "nullvalue": "null_value",
}


@dataclass(frozen=True)
class CsvOptions:
    """How lines of CSV are written.

    Args:
        separator: Between two fields.
        quote: Around a field that needs it.
        escape: Before a quote inside of quotes.
        null_value: Text of NULL.
    """

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    null_value: str = ""


def read(node: Call, position: int) -> CsvOptions | None:
    """The options that are the argument at a position; None for those that are not proven."""
    if len(node.args) <= position:
        return CsvOptions()
    given = node.args[position]
    if not isinstance(given, Call) or given.function != "map":
        return None
    texts = [a.value if isinstance(a, Literal) else None for a in given.args]
    found: dict[str, str] = {}
    for name, value in zip(texts[::2], texts[1::2], strict=True):
        known = _NAMES.get(str(name).lower())
        if known is None or known in found or not isinstance(value, str):
            return None
        found[known] = value
    options = CsvOptions(**found)
    return options if _is_proven(options) else None


def _is_proven(options: CsvOptions) -> bool:
    return (
        options.separator in _SEPARATORS
        and options.quote in _QUOTES
        and options.escape in _ESCAPES
        and _NULL_VALUE.fullmatch(options.null_value) is not None
    )
