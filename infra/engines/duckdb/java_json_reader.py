"""JSON texts as Spark reads them: Jackson, which allows single quotes and control characters here.

Python's own scanner reads JSON proper and numbers such as NaN; this module makes up the difference.
Sources: Spark's `SharedFactory` (which features of Jackson are on) and `CreateJacksonParser`;
Jackson's `ReaderBasedJsonParser` and `StreamReadConstraints` (limits).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TypeAlias

_MOST_LEVELS = 1_000
_MOST_DIGITS = 1_000
_MOST_CHARACTERS = 20_000_000
_MOST_OF_NAME = 50_000

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
# A string in either quotes, or the rest of the text from a quote on that nothing closes.
_EITHER_STRING = re.compile(
    r"""'(?P<single>[^'\\]*(?:\\.[^'\\]*)*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"|['"].*""",
    re.DOTALL,
)
_QUOTE = re.compile(r"""\\.|\"""", re.DOTALL)
# Jackson takes many a letter for a digit here.
_ODD_DIGIT = re.compile(r"\\u[0-9A-Fa-f]{0,3}[^\x00-\x7f]")
_LONG_NUMBER = re.compile(rf"[-+.eE0-9]{{{_MOST_DIGITS + 1}}}")
_ROOT_NUMBER_ENDS = " \t\r\n"
_NAME_GOES_ON = re.compile(r"[A-Za-z0-9_\x7f]")
_NAME_MAY_GO_ON = re.compile(r"[^\x00-\x7f]")


class BrokenJsonError(Exception):
    """Jackson does not read the text, which Spark answers with NULL."""


class UnclearJsonError(Exception):
    """Only Jackson knows what it reads in the text, or whether it does."""


class Whole(str):
    """The text of a number without a fraction and without an exponent."""

    __slots__ = ()


class Double(str):
    """The text of any other number."""

    __slots__ = ()


class Members(tuple[tuple[str, "Value"], ...]):
    """The members of an object in their order; a name may be there several times."""

    __slots__ = ()


Value: TypeAlias = "str | bool | list[Value] | Members | None"
"""A JSON value: a text, `Whole`, `Double`, a boolean, an array, an object or None for null."""


def read_json(text: str) -> Value:
    """The first value of a text. The rest of the text is ignored, as Jackson ignores it.

    Raises:
        BrokenJsonError: Jackson finds an error in the value.
        UnclearJsonError: A limit or a letter that only Jackson can judge.
        RecursionError: The value has nearly as many levels as Jackson reads.
    """
    if len(text) > _MOST_CHARACTERS:
        raise UnclearJsonError("the text is very long")
    try:
        return _read(text)
    except BrokenJsonError:
        if _ODD_DIGIT.search(text):
            raise UnclearJsonError("a letter in place of a digit") from None
        if "'" not in text:
            raise
    return _read(_EITHER_STRING.sub(_with_double_quotes, text))


def _read(text: str) -> Value:
    if text.count("[") + text.count("{") > _MOST_LEVELS and _levels(text) > _MOST_LEVELS:
        raise BrokenJsonError
    try:
        value, end = _DECODER.raw_decode(text, _after_space(text))
    except ValueError as error:
        raise BrokenJsonError from error
    if not isinstance(value, list | Members):
        _check_end(value, text[end : end + 1])
    if len(text) > _MOST_OF_NAME // 2 or _LONG_NUMBER.search(text):
        _check_lengths(value)
    return value


def _refused(constant: str) -> None:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_int=Whole,
    parse_float=Double,
    parse_constant=_refused,
    strict=False,
)


def _after_space(text: str) -> int:
    found = _SPACE.match(text)
    return found.end() if found else 0


def _with_double_quotes(found: re.Match[str]) -> str:
    """A string as JSON has it; an apostrophe may be escaped in both."""
    content = found["single"] if found["double"] is None else found["double"]
    if content is None:
        return found[0]
    return f'"{_QUOTE.sub(_escaped, content)}"'


def _escaped(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _levels(text: str) -> int:
    """How deep the first value is."""
    level = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", _STRING.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
        if level <= 0 or deepest > _MOST_LEVELS:
            break
    return deepest


def _check_end(value: Value, following: str) -> None:
    """Whether a value that is neither an array nor an object ends where Python ends it."""
    if not following or type(value) is str:
        return
    if isinstance(value, Whole | Double):
        if following not in _ROOT_NUMBER_ENDS:
            raise BrokenJsonError
    elif _NAME_GOES_ON.match(following):
        raise BrokenJsonError
    elif _NAME_MAY_GO_ON.match(following):
        raise UnclearJsonError("what follows a word")


def _check_lengths(value: Value) -> None:
    for part in _parts(value):
        if isinstance(part, Members):
            if any(_units(name) > _MOST_OF_NAME for name, _ in part):
                raise BrokenJsonError
        elif isinstance(part, Whole | Double):
            digits = sum(map(str.isdigit, part))
            if isinstance(part, Double) and digits == _MOST_DIGITS + 1:
                raise UnclearJsonError("Jackson counts now one digit more, now one less")
            if digits > _MOST_DIGITS:
                raise BrokenJsonError


def _units(text: str) -> int:
    """The length of a text in Java."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _parts(value: Value) -> Iterator[Value]:
    left = [value]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Members):
            left += [member for _, member in part]
        elif isinstance(part, list):
            left += part
