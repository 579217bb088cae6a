"""JSON values as Spark writes them: as Jackson copies what it reads.

Numbers with a fraction or an exponent become doubles; white space goes. Sources: Jackson's
`JsonGenerator.copyCurrentStructure`, `UTF8JsonGenerator` and `WriterBasedJsonGenerator`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from stagecoach.infra.engines.duckdb.java_float_texts import double_text
from stagecoach.infra.engines.duckdb.java_json_reader import (
    BrokenJsonError,
    Double,
    Members,
    UnclearJsonError,
    Value,
    Whole,
)

_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_CONTROLS = r'[\x00-\x1f"\\]'
_ESCAPED = re.compile(_CONTROLS)
_ESCAPED_IN_BYTES = re.compile(rf"{_CONTROLS}|[\ud800-\udfff\U00010000-\U0010ffff]")
_HALF = re.compile("[\ud800-\udfff]")
_SECOND_HALVES = re.compile("[\udc00-\udfff]{2}")
# Of all doubles within these bounds, every version of Java writes what Python does.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


@dataclass(frozen=True)
class JsonStyle:
    """How values are written.

    Args:
        fewest: 1 where Java writes doubles with the fewest digits, 0 where it is older than 19,
            None where that is not known.
        in_bytes: Whether Jackson writes bytes, not characters: then it escapes what takes two
            characters in Java.
    """

    fewest: int | None
    in_bytes: bool = True


@dataclass
class JsonOutput:
    """What is written of one result.

    Args:
        style: How values are written.
    """

    style: JsonStyle
    _parts: list[str] = field(default_factory=list)
    # How many values the open arrays have, and the root before them.
    _counts: list[int] = field(default_factory=lambda: [0])

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self._parts)

    def raw(self, text: str) -> None:
        """A text without quotes.

        Raises:
            BrokenJsonError, UnclearJsonError: See `raw_text`.
        """
        self._parts.append(raw_text(text) if self.style.in_bytes else text)

    def value(self, written: str) -> None:
        """A value, as `json_text` writes it, behind those before it."""
        if self._counts[-1]:
            self._parts.append("," if len(self._counts) > 1 else " ")
        self._counts[-1] += 1
        self.raw(written)

    def start_array(self) -> None:
        """The beginning of an array, for the values that follow."""
        self.value("[")
        self._counts.append(0)

    def end_array(self) -> None:
        """The end of the array that was begun last."""
        self._counts.pop()
        self._parts.append("]")


def raw_text(text: str) -> str:
    """A text without quotes in bytes.

    Raises:
        BrokenJsonError: Half of a character that takes two in Java.
        UnclearJsonError: Two low surrogates in a row, which Jackson writes as invalid UTF-8.
    """
    if text.isascii() or not _HALF.search(text):
        return text
    if _HALF.search(_SECOND_HALVES.sub("", text)):
        raise BrokenJsonError
    raise UnclearJsonError("two halves of characters")


def json_text(value: Value, style: JsonStyle) -> str:
    """A value as JSON.

    Raises:
        UnclearJsonError: A double, if `style` does not say how Java writes it.
        RecursionError: The value has hundreds of levels.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join([json_text(item, style) for item in value])}]"
    if isinstance(value, Members):
        members = [f"{_quoted(name, style)}:{json_text(item, style)}" for name, item in value]
        return f"{{{','.join(members)}}}"
    if isinstance(value, Whole):
        return "0" if value == "-0" else value
    if isinstance(value, Double):
        return _double(float(value), style)
    return _quoted(value, style)


def _quoted(text: str, style: JsonStyle) -> str:
    return f'"{(_ESCAPED_IN_BYTES if style.in_bytes else _ESCAPED).sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _double(number: float, style: JsonStyle) -> str:
    if _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        return repr(number)
    text = double_text(number, style.fewest)
    if text is None:
        raise UnclearJsonError("versions of Java write the number differently")
    return text if math.isfinite(number) else f'"{text}"'
